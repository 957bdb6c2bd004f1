"""Hidden checks of one causal head with weights of its own."""

import itertools
import re

import torch

from manyheads.checks import (
    HALF_PRECISION,
    Layer,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_near,
    assert_refused,
    assert_shape,
    assert_unmutated,
    check,
    contradicts_itself,
    expect,
    moved,
    weights_without_effect,
)

LAYERS = ("W_query", "W_key", "W_value")
MISFIT = re.compile(r"must match|not broadcastable|expanded size|doesn't match the broadcast|inconsistent tensor")
STRIDES = re.compile("view size is not compatible")
DEEP = 44.0  # how far below 0 scores can lie: what hides the future must lie deeper
STRANDED = re.compile(r"expected device|same device|CUDA|NVIDIA")


def sizes_of(draw):
    """Sizes that differ pairwise: no two axes can be mixed up unseen, and T is shorter than the context.

    None is usual in lessons: whoever hard-codes one is found in every check.
    """
    return draw.sizes(B=[5, 7], T=[9, 11], d_in=[13, 14], d_out=[10, 15], ctx=[17, 19])


def large_sizes_of(draw):
    """The same, larger: more tokens than anybody tries by hand."""
    return draw.sizes(B=(2, 3), T=(40, 60), d_in=(17, 25), d_out=(9, 15), ctx=(61, 64))


def weights_of(draw, s, bias=True):
    """Weights by name, every bias non-zero."""
    weights = {f"{name}.weight": draw.weights(s.d_out, s.d_in) for name in LAYERS}
    return weights | ({f"{name}.bias": draw(s.d_out, scale=0.5) for name in LAYERS} if bias else {})


def deep(draw, s, T, bias=True):
    """Weights and an input with which every score, in every head, lies near −DEEP: channel 0 is 1 in every token."""
    state, x = weights_of(draw, s, bias), draw(s.B, T, s.d_in)
    x[..., 0] = 1.0
    direction = draw(s.d_out)
    direction *= (DEEP * s.d_out**0.5) ** 0.5 / direction.norm()
    for name, sign in (("W_query", 1.0), ("W_key", -1.0)):
        state |= {key: 0.05 * tensor for key, tensor in state.items() if key.startswith(name)}
        state[f"{name}.weight"][:, 0] = sign * direction
    return state, x


def head(candidate, s, state, *, bias=True, **options):
    """The module of these sizes with these weights."""
    return candidate.module("CausalAttention", s.d_in, s.d_out, s.ctx, qkv_bias=bias, **options).loaded(state)


def works(answer, shape):
    """Whether a tensor of this shape came back."""
    out = answer.reply.outputs
    return answer.raised is None and bool(out) and out[0].shape == tuple(shape)


def has_fixed_sizes(attempt, draw, s):
    """Whether it works for some batch, length or width, though not for those of `s`: they are written into it."""
    rows = [(B, T, 10, 14) for B, T in itertools.product((1, 2, 4, 8), (2, 3, 4, 5, 6)) if B != T]
    rows += [(3, 5, 7, d_out) for d_out in (2, 4, 8, 64)] + [(3, 5, d_in, 7) for d_in in (2, 4, 8, 64)]
    for B, T, d_in, d_out in rows:
        module = attempt.asking(random=True).module("CausalAttention", d_in, d_out, T)
        if works(module(draw(B, T, d_in)), (B, T, d_out)):
            return True
    return False


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape, and let -1 or d_out stand for the rest.")
def test_shape(attempt, draw):
    """gives (B, T, d_out), for any batch and down to a single token"""
    s = sizes_of(draw)
    state = weights_of(draw, s, bias=False)
    for B, T in ((s.B, s.ctx), (1, 1)):
        answer = attempt.module("CausalAttention", s.d_in, s.d_out, T).loaded(state)(draw(B, T, s.d_in))
        if (
            not works(answer, (B, T, s.d_out))
            and not STRIDES.search(answer.message)
            and has_fixed_sizes(attempt, draw, s)
        ):
            expect(False, f"it works for some sizes, but not for B = {B} with T = {T}", "hard_coded_shape")
        assert_shape(answer, (B, T, s.d_out))


@check(
    points=0.25,
    layer=Layer.SHAPE,
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw):
    """takes fewer tokens than the context holds"""
    s = sizes_of(draw)
    module, x = head(attempt, s, weights_of(draw, s)), draw(s.B, s.ctx, s.d_in)
    answer = module(x[:, : s.T])
    if not works(answer, (s.B, s.T, s.d_out)) and works(module(x), (s.B, s.ctx, s.d_out)):
        misfit = MISFIT.search(answer.message)
        evidence = f"a full context of {s.ctx} tokens works; {s.T} tokens do not"
        expect(False, evidence, "mask_not_sliced" if misfit else "")
    assert_shape(answer, (s.B, s.T, s.d_out))


@check(points=0.25, layer=Layer.FINITE, hint="Can a row of the mask be hidden whole? And what is 0 · ∞?")
def test_finite(attempt, draw):
    """gives no NaN"""
    s = sizes_of(draw)
    assert_finite(head(attempt, s, weights_of(draw, s))(draw(s.B, s.T, s.d_in)))


@check(
    points=0.5,
    layer=Layer.CAUSALITY,
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the softmax?",
)
def test_future(attempt, draw):
    """keeps the past as it was when the future is edited"""
    s = sizes_of(draw)
    state, x = deep(draw, s, s.T)
    module = head(attempt, s, state)
    for cut in (1, s.T - 2):
        edited = x.clone()
        edited[:, cut:, 1:] = 2 * draw(s.B, s.T - cut, s.d_in - 1)
        before, after = module(x).output, module(edited).output
        assert_shape(before, (s.B, s.T, s.d_out))
        changed = (moved(before, after)[:, :cut] > 1e-5).any(0).nonzero().flatten().tolist()
        expect(
            not changed, f"the tokens from position {cut} on were edited, and the answers at positions {changed} moved"
        )


@check(points=0.5, layer=Layer.CAUSALITY, hint="The diagonal is visible too. And does any step mix the first axis?")
def test_sees_past(attempt, draw):
    """sees itself and all of its own past, and no other sequence"""
    s = sizes_of(draw)
    module, x = head(attempt, s, weights_of(draw, s)), draw(s.B, s.T, s.d_in)
    edited = x.clone()
    edited[0, 1] = draw(s.d_in)
    before, after = module(x).output, module(edited).output
    assert_shape(before, (s.B, s.T, s.d_out))
    moves = moved(before, after)
    others = (moves[1:] > 1e-5).any(1).nonzero().flatten().tolist()
    expect(not others, "one sequence of the batch was edited, and the answers for another one moved")
    blind = (moves[0, 1:] < 1e-9).nonzero().flatten().tolist()
    expect(
        not blind, f"the token at position 1 was edited, and the answers at positions {[t + 1 for t in blind]} stayed"
    )


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="A hidden score must lose against every score that is visible, however low. What is e to the power of it?",
)
def test_hidden_for_good(attempt, draw):
    """hides the future even where all scores are low"""
    s = sizes_of(draw)
    state, x = deep(draw, s, s.T)
    module, edited = head(attempt, s, state), x.clone()
    edited[:, 2:, 1:] = draw(s.B, s.T - 2, s.d_in - 1)
    leak = moved(module(x).output, module(edited).output)[:, :2].max()
    expect(leak <= 1e-5, "with low scores everywhere the future shows through: what hides it is not low enough")


@check(
    points=0.75,
    layer=Layer.VALUES,
    hint="Do the second token of a short sentence by hand, and print scores and weights beside it.",
)
def test_values(attempt, reference, draw):
    """mixes the values by the softmax of the scaled scores"""
    ordinary, low, large = sizes_of(draw), sizes_of(draw), large_sizes_of(draw)
    for s, (state, x) in (
        (ordinary, (weights_of(draw, ordinary), draw(ordinary.B, ordinary.T, ordinary.d_in))),
        (low, deep(draw, low, low.T)),
        (large, (weights_of(draw, large), draw(large.B, large.T, large.d_in))),
    ):
        got, want = head(attempt, s, state)(x).output, head(reference, s, state)(x).output
        assert_shape(got, want.shape)
        own = (got[:, 0] - want[:, 0]).abs().max() <= 1e-5 * want.abs().max()
        what = "the output" if own else "token 0 sees only itself and should become its own value row; the output"
        assert_matches(got, want, what)


@check(points=0.5, layer=Layer.VALUES, hint="Which number do you divide by, and does it change when d_in does?")
def test_square(attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = draw.sizes(B=[5, 7], ctx=[11, 13], d_in=[14, 15])
    s.d_out = s.d_in
    state, x = deep(draw, s, s.ctx, bias=False)
    assert_matches(head(attempt, s, state, bias=False)(x), head(reference, s, state, bias=False)(x))


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to every weight"""
    s = sizes_of(draw)
    (state, x), g = deep(draw, s, s.T), draw(s.B, s.T, s.d_out)
    got, want = (head(c.asking(cotangent=g), s, state)(x) for c in (attempt, reference))
    assert_shape(got, g.shape)
    names = [*(name for name in state if name in got.module.parameters), "args.0"]
    target = {name: want.gradient(name) for name in names}
    try:
        assert_gradients_match(got, want, *names)
    except AssertionError as failure:
        again = head(attempt.asking(seed=1), s, state)(x)
        steady = torch.equal(again.output, got.output)  # weights made anew in forward have no gradients to compare
        if steady and contradicts_itself(lambda w, y: head(attempt, s, w)(y), got, names, state, x, target, g):
            expect(False, f"{failure}; your gradients are not those of your own output", "gradient_cut")
        raise


def judge_parameters(found, wanted, ctx, asked):
    """Names and shapes exactly as wanted; what differs says which fault it is."""
    missing, extra = [n for n in wanted if n not in found], [n for n in found if n not in wanted]
    masks = [n for n in extra if found[n].shape[-2:] == (ctx, ctx)]
    expect(not masks, "a tensor of the mask's shape is among the parameters: it would be trained", "mask_is_parameter")
    strays = [n for n in extra if n.rpartition(".")[0] in LAYERS and n.endswith(".bias")]
    expect(not strays, f"{asked}, and {', '.join(strays)} is there all the same", "proj_bias")
    silent = [n for n in missing if n.endswith(".bias") and n.replace(".bias", ".weight") in found]
    expect(not silent, f"{asked}, and there is no {', '.join(silent)}", "proj_bias")
    lost = f"{', '.join(missing)} cannot be found among the parameters"
    expect(not missing or extra, f"{lost}: no optimiser will ever see them", "params_not_registered")
    expect(not missing, f"{lost}, though {len(extra)} of other names can", "params_extra")
    expect(not extra, f"there are {len(extra)} parameters beyond those of the three layers", "params_extra")
    for name, shape in wanted.items():
        strange = set(found[name].shape) - {size for other in wanted.values() for size in other}
        said = f"{name} should have shape {shape}; yours has {tuple(found[name].shape)}, whatever is asked for"
        expect(not strange, said, "hard_coded_shape")
        assert_shape(torch.empty(found[name].shape, device="meta"), shape, name)


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Count: 3 · d_in · d_out, and 3 · d_out more where qkv_bias asks for biases."
)
def test_parameters(attempt, draw):
    """learns W_query, W_key and W_value and nothing else"""
    for bias in (False, True):
        s = sizes_of(draw)
        sizes = {"d_in": s.d_in, "d_out": s.d_out, "context_length": s.ctx}
        module = attempt.module("CausalAttention", **sizes, dropout=0.0, qkv_bias=bias)
        facts = module.built().module
        if not facts.parameters:
            module(draw(s.B, s.ctx, s.d_in)).must_return()  # perhaps nothing is written yet
        wanted = {f"{name}.weight": (s.d_out, s.d_in) for name in LAYERS}
        wanted |= {f"{name}.bias": (s.d_out,) for name in LAYERS if bias}
        judge_parameters(facts.parameters, wanted, s.ctx, f"qkv_bias is {bias}")
        head(attempt, s, weights_of(draw, s, bias), bias=bias)(draw(s.B, s.ctx, s.d_in)).must_return()


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Compare T with context_length before anything else, and raise a ValueError that names both.",
)
def test_refuses_beyond_context(attempt, draw):
    """refuses more tokens than the context holds"""
    s = sizes_of(draw)
    module, x = head(attempt, s, weights_of(draw, s)), draw(s.B, s.ctx + 1, s.d_in)
    module(x[:, 1:]).must_return()
    what = f"T = {s.ctx + 1} with a context of {s.ctx}"
    assert_refused(module(x), what, also=("RuntimeError",), suspect="context_unchecked")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="F.dropout is awake unless you tell it otherwise; nn.Dropout asks the module.",
)
def test_dropout_sleeps(attempt, draw):
    """leaves dropout out in eval mode"""
    s = sizes_of(draw)
    state, x = weights_of(draw, s), draw(s.B, s.T, s.d_in)
    answer = head(attempt.asking(runs=2), s, state)(x)
    plain, again = answer.outputs
    steady = answer.reply.mutated or (moved(plain, again) <= 1e-5).all()
    if not steady:
        deaf = weights_without_effect(lambda weights: head(attempt.asking(random=True), s, weights)(x), state)
        told = f"; {', '.join(deaf)} changes nothing: another is made in every call" if deaf else ""
        fault = "params_not_registered" if deaf else ""
        expect(False, f"even without dropout the same input gives two answers{told}", fault)
    answer = head(attempt.asking(random=True, runs=2), s, state, dropout=0.5)(x)
    for once in answer.outputs[: 1 if answer.reply.mutated else 2]:
        same = once.shape == plain.shape and bool((moved(plain, once) <= 1e-5).all())
        expect(same, "in eval mode dropout = 0.5 changes the output", "dropout_always_on")


COPIES, P = 512, 0.25


def dropped(ask, x):
    """COPIES of one sequence in training, and what eval mode makes of it: (COPIES, T, d), (1, T, d)."""
    awake, asleep = ask(P).training()(x.expand(COPIES, *x.shape[1:]).contiguous()).output, ask(0.0)(x).output
    assert_shape(awake, (COPIES, *asleep.shape[1:]))
    return awake, asleep


def near(a, b):
    """Entry by entry, to 1e-4 of the largest of b."""
    return (a - b).abs() <= 1e-4 * b.abs().max()


def judge_misplaced(ask, x, unmoved):
    """Name where dropout acts, if not on the weights; x has two tokens."""
    awake, asleep = dropped(ask, x)
    if unmoved and near(awake, asleep).all():
        eval_too = ask(0.9)(x.expand(64, *x.shape[1:]).contiguous()).output
        suspect = "dropout_missing" if near(eval_too, asleep).all() else ""
        expect(False, "in training nothing is ever dropped", suspect)
    outcomes = len((awake.nan_to_num(1e3)[:, -1] / asleep.abs().max()).mul(1e4).round().unique(dim=0))
    expect(
        not (unmoved and outcomes <= 4),
        "scores are dropped, not weights: what is left sums to 1",
        "dropout_before_softmax",
    )
    scattered = (near(awake, 0 * asleep) | near(awake, asleep / (1 - P))).all()
    expect(
        unmoved or not scattered,
        "single channels of the answer are dropped, not whole weights",
        "dropout_on_output_only",
    )


@check(points=0.25, layer=Layer.HYGIENE, hint="Dropout belongs between the softmax and the values.")
def test_dropout_on_weights(attempt, draw):
    """drops attention weights in training, and scales up the rest"""
    s = sizes_of(draw)
    state = weights_of(draw, s)

    def ask(p):
        return head(attempt.asking(random=True), s, state, dropout=p)

    awake, asleep = dropped(ask, draw(1, 1, s.d_in))  # one token: one weight, 1 or struck out
    struck, kept = near(awake, 0 * asleep).all(-1), near(awake, asleep / (1 - P)).all(-1)
    if not (struck | kept).all():
        judge_misplaced(ask, draw(1, 2, s.d_in), unmoved=near(awake, asleep).all())
    expect((struck | kept).all(), "with one token the answer is neither all 0 nor all scaled up by 1 / (1 − p)")
    expect(
        abs(float(struck.double().mean()) - P) <= 0.154, f"with p = {P} {float(struck.double().mean()):.0%} is dropped"
    )
    awake, asleep = dropped(ask, draw(1, 4, s.d_in))
    error = 8 * awake.std(0) / COPIES**0.5 + 1e-5 * asleep.abs().max()
    expect(((awake.mean(0) - asleep[0]).abs() <= error).all(), "on average training does not give what eval mode gives")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="A tensor that must move with the module and is not learned: register_buffer.",
)
def test_moves(attempt, draw):
    """moves to another device as a whole"""
    s = sizes_of(draw)
    state = weights_of(draw, s)
    head(attempt, s, state)(draw(s.B, s.ctx, s.d_in)).must_return()  # what does not run at home cannot move
    module = head(attempt.asking(watch=True), s, state).on("meta")
    answer = module(torch.empty(s.B, s.ctx, s.d_in, dtype=torch.float64, device="meta"))
    seen, ends = answer.reply.operations, {out.device for out in answer.reply.outputs} - {None}
    if not STRANDED.search(answer.message) and not (seen and seen.mixed) and ends <= {"meta"}:
        return
    facts = answer.reply.modules[0] if answer.reply.modules else None
    plain = facts and [t.shape for t in facts.plain.values() if t.device != "meta" and s.ctx in t.shape[-2:]]
    expect(not plain, f"the module moved, and a plain tensor {plain and plain[0]} stayed behind", "mask_not_moved")
    registered = facts is None or all(f"{name}.weight" in facts.parameters for name in LAYERS)
    evidence = "the module moved, and some tensor is made on, or stays on, another device"
    expect(False, evidence, "hard_coded_device" if registered else "")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Name no dtype in forward, or take x.dtype; and compute new tensors in place of x.mul_ and the like.",
)
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of its input, and leaves the input as it was"""
    s = sizes_of(draw)
    state, x = weights_of(draw, s), draw(s.B, s.T, s.d_in)
    answers = {dtype: head(attempt.asking(dtype=dtype), s, state)(x) for dtype in ("float32", "float64")}
    failing = [dtype for dtype, answer in answers.items() if answer.raised is not None]
    registered = all(f"{name}.weight" in answers["float32"].module.parameters for name in LAYERS)
    suspect = "hard_coded_dtype" if registered else ""
    expect(len(failing) != 1, f"it works in one dtype, and not in {''.join(failing)}", suspect)
    for dtype, answer in answers.items():
        assert_shape(answer, (s.B, s.T, s.d_out))
        expect(answer.dtype == dtype, f"{dtype} in should give {dtype} out; yours gives {answer.dtype}", suspect)
        assert_unmutated(answer, suspect="input_mutated")


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s = sizes_of(draw)
    state, x = weights_of(draw, s), draw(s.B, s.T, s.d_in)
    exact = head(reference, s, state)(x)
    for dtype in HALF_PRECISION:
        assert_near(head(attempt.asking(dtype="float32", autocast=dtype), s, state)(x), exact)
