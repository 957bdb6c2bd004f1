"""Hidden checks of causal multi-head attention by weight split."""

import itertools
import re
from types import SimpleNamespace

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


def sizes_of(draw, **fixed):
    """Sizes that differ pairwise: no two axes can be mixed up unseen, and T is shorter than the context.

    None is usual in lessons: whoever hard-codes one is found in every check.
    """
    while True:
        s = draw.sizes(B=[7], T=[9, 11], nh=[5], hd=[6], d_in=[13, 14], ctx=[17, 19])
        s = SimpleNamespace(**{**vars(s), **fixed})
        s.d_out = s.nh * s.hd
        if len(set(vars(s).values())) == len(vars(s)):
            return s


def large_sizes_of(draw):
    """The same, larger: more heads and tokens than anybody tries by hand."""
    while True:
        s = draw.sizes(B=(2, 3), T=(40, 60), nh=(9, 12), hd=(4, 5), d_in=(14, 17), ctx=(61, 64))
        s.d_out = s.nh * s.hd
        if len(set(vars(s).values())) == len(vars(s)):
            return s


def weights_of(draw, s, bias=True):
    """Weights by name, every bias non-zero."""
    weights = {f"{name}.weight": draw.weights(s.d_out, s.d_in) for name in LAYERS}
    weights |= {f"{name}.bias": draw(s.d_out, scale=0.5) for name in LAYERS if bias}
    return weights | {"out_proj.weight": draw.weights(s.d_out, s.d_out), "out_proj.bias": draw(s.d_out)}


def passing_through(state, s):
    """The same weights with an out_proj that changes nothing."""
    return state | {
        "out_proj.weight": torch.eye(s.d_out, dtype=torch.float64),
        "out_proj.bias": torch.zeros(s.d_out, dtype=torch.float64),
    }


def deep(draw, s, T, bias=True):
    """Weights and an input with which every score, in every head, lies near −DEEP: channel 0 is 1 in every token."""
    state, x = weights_of(draw, s, bias), draw(s.B, T, s.d_in)
    x[..., 0] = 1.0
    directions = draw(s.nh, s.hd)
    directions *= (DEEP * s.hd**0.5) ** 0.5 / directions.norm(dim=-1, keepdim=True)
    for name, sign in (("W_query", 1.0), ("W_key", -1.0)):
        state |= {key: 0.05 * tensor for key, tensor in state.items() if key.startswith(name)}
        state[f"{name}.weight"][:, 0] = sign * directions.flatten()
    return state, x


def layer(candidate, s, state, *, bias=True, **options):
    """The module of these sizes with these weights."""
    sizes = (s.d_in, s.d_out, s.ctx, s.nh)
    return candidate.module("MultiHeadAttention", *sizes, qkv_bias=bias, **options).loaded(state)


def works(answer, shape):
    """Whether a tensor of this shape came back."""
    out = answer.reply.outputs
    return answer.raised is None and bool(out) and out[0].shape == tuple(shape)


def has_fixed_sizes(attempt, draw, s):
    """Whether it works for some batch, length, width or head count, though not for those of `s`: they are written in."""
    rows = [(B, T, 10, 30, 3) for B, T in itertools.product((1, 2, 4, 8), (2, 4, 5, 6, 7)) if B != T]
    rows += [(3, 5, 10, nh * hd, nh) for nh, hd in ((2, 2), (2, 4), (4, 16), (2, 64), (4, 2), (8, 2), (12, 2))]
    for B, T, d_in, d_out, nh in rows:
        module = attempt.asking(random=True).module("MultiHeadAttention", d_in, d_out, T, nh)
        if works(module(draw(B, T, d_in)), (B, T, d_out)):
            return True
    return False


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape, head_dim from d_out and num_heads.")
def test_shape(attempt, draw):
    """gives (B, T, d_out), for any batch, down to a single token and a single head"""
    s = sizes_of(draw)
    state = weights_of(draw, s, bias=False)
    for B, T, nh in ((s.B, s.ctx, s.nh), (1, 1, 1)):
        answer = attempt.module("MultiHeadAttention", s.d_in, s.d_out, T, nh).loaded(state)(draw(B, T, s.d_in))
        if (
            not works(answer, (B, T, s.d_out))
            and not STRIDES.search(answer.message)
            and has_fixed_sizes(attempt, draw, s)
        ):
            expect(
                False, f"it works for some sizes, but not for B = {B}, T = {T}, num_heads = {nh}", "hard_coded_shape"
            )
        assert_shape(answer, (B, T, s.d_out))


@check(
    points=0.25,
    layer=Layer.SHAPE,
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw):
    """takes fewer tokens than the context holds"""
    s = sizes_of(draw)
    module, x = layer(attempt, s, weights_of(draw, s)), draw(s.B, s.ctx, s.d_in)
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
    assert_finite(layer(attempt, s, weights_of(draw, s))(draw(s.B, s.T, s.d_in)))


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the softmax?",
)
def test_future(attempt, draw):
    """keeps the past as it was when the future is edited"""
    s = sizes_of(draw)
    state, x = deep(draw, s, s.T)
    module = layer(attempt, s, state)
    for cut in (1, s.T - 2):
        edited = x.clone()
        edited[:, cut:, 1:] = 2 * draw(s.B, s.T - cut, s.d_in - 1)
        before, after = module(x).output, module(edited).output
        assert_shape(before, (s.B, s.T, s.d_out))
        changed = (moved(before, after)[:, :cut] > 1e-5).any(0).nonzero().flatten().tolist()
        expect(
            not changed, f"the tokens from position {cut} on were edited, and the answers at positions {changed} moved"
        )


@check(points=0.25, layer=Layer.CAUSALITY, hint="The diagonal is visible too. And does any step mix the first axis?")
def test_sees_past(attempt, draw):
    """sees itself and all of its own past, and no other sequence"""
    s = sizes_of(draw)
    module, x = layer(attempt, s, weights_of(draw, s)), draw(s.B, s.T, s.d_in)
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
    module, edited = layer(attempt, s, state), x.clone()
    edited[:, 2:, 1:] = draw(s.B, s.T - 2, s.d_in - 1)
    leak = moved(module(x).output, module(edited).output)[:, :2].max()
    expect(leak <= 1e-5, "with low scores everywhere the future shows through: what hides it is not low enough")


@check(points=0.5, layer=Layer.CAUSALITY, hint="Which rows of W_query belong to head 0? Follow them into the output.")
def test_heads_apart(attempt, draw):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    s = sizes_of(draw)
    state, x = passing_through(weights_of(draw, s), s), draw(s.B, s.T, s.d_in)
    h = s.nh - 1  # the last one: in another order it stands elsewhere, and what is added up ends before it
    before = layer(attempt, s, state)(x).output
    assert_shape(before, (s.B, s.T, s.d_out))
    rows = slice(h * s.hd, (h + 1) * s.hd)
    edited = dict(state)
    for name in ("W_query", "W_key"):
        edited[f"{name}.weight"] = state[f"{name}.weight"].clone()
        edited[f"{name}.weight"][rows] = draw.weights(s.hd, s.d_in)
    after = layer(attempt, s, edited)(x).output
    moves = moved(before.transpose(1, 2), after.transpose(1, 2)).amax(0)  # (d_out,)
    others = [c for c in range(s.d_out) if c // s.hd != h and moves[c] > 1e-5]
    own = [c for c in range(s.d_out) if c // s.hd == h and moves[c] < 1e-9]
    of_head = f"the rows of head {h} in W_query and W_key were edited (out_proj passes everything on)"
    expect(not others, f"{of_head}, and channels {others[:8]} moved: head {h} owns {rows.start}…{rows.stop - 1}")
    expect(not own, f"{of_head}, and its own channels {own[:8]} stayed")


@check(
    points=0.75,
    layer=Layer.VALUES,
    hint="Let out_proj be the identity, take one head, and do the second token by hand.",
)
def test_values(attempt, reference, draw):
    """attends in every head, joins the heads and projects"""
    ordinary, low, large = sizes_of(draw), sizes_of(draw), large_sizes_of(draw)
    for s, (state, x) in (
        (ordinary, (weights_of(draw, ordinary), draw(ordinary.B, ordinary.T, ordinary.d_in))),
        (low, deep(draw, low, low.T)),
        (large, (weights_of(draw, large), draw(large.B, large.T, large.d_in))),
    ):
        got, want = layer(attempt, s, state)(x).output, layer(reference, s, state)(x).output
        assert_shape(got, want.shape)
        own = (got[:, 0] - want[:, 0]).abs().max() <= 1e-5 * want.abs().max()
        what = "the output" if own else "token 0 should be out_proj of its own value row and is not; the output"
        assert_matches(got, want, what)


@check(points=0.25, layer=Layer.VALUES, hint="Which sizes does your code read from the wrong place when d_in = d_out?")
def test_square(attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = sizes_of(draw)
    s.d_in = s.d_out
    state, x = deep(draw, s, s.ctx, bias=False)
    assert_matches(layer(attempt, s, state, bias=False)(x), layer(reference, s, state, bias=False)(x))


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to every weight"""
    s = sizes_of(draw)
    (state, x), g = deep(draw, s, s.T), draw(s.B, s.T, s.d_out)
    got, want = (layer(c.asking(cotangent=g), s, state)(x) for c in (attempt, reference))
    assert_shape(got, g.shape)
    names = [*(name for name in state if name in got.module.parameters), "args.0"]
    target = {name: want.gradient(name) for name in names}
    try:
        assert_gradients_match(got, want, *names)
    except AssertionError as failure:
        again = layer(attempt.asking(seed=1), s, state)(x)
        steady = torch.equal(again.output, got.output)  # weights made anew in forward have no gradients to compare
        if steady and contradicts_itself(lambda w, y: layer(attempt, s, w)(y), got, names, state, x, target, g):
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
    absent = all(n.startswith("out_proj") for n in missing)  # hidden, or never made? The values tell
    suspect = "" if absent else "params_not_registered"
    expect(not missing or extra, f"{lost}: no optimiser will ever see them", suspect)
    expect(not missing, f"{lost}, though {len(extra)} of other names can", "params_extra")
    expect(not extra, f"there are {len(extra)} parameters beyond those of the four layers", "params_extra")
    for name, shape in wanted.items():
        assert_shape(torch.empty(found[name].shape, device="meta"), shape, name)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Count: 3 · d_in · d_out + d_out · (d_out + 1), and 3 · d_out more for qkv_bias.",
)
def test_parameters(attempt, draw):
    """learns W_query, W_key, W_value and out_proj and nothing else"""
    s = sizes_of(draw)
    for bias in (False, True):
        sizes = {"d_in": s.d_in, "d_out": s.d_out, "context_length": s.ctx, "num_heads": s.nh}
        module = attempt.module("MultiHeadAttention", **sizes, dropout=0.0, qkv_bias=bias)
        facts = module.built().module
        if not facts.parameters:
            module(draw(s.B, s.ctx, s.d_in)).must_return()  # perhaps nothing is written yet
        wanted = {f"{name}.weight": (s.d_out, s.d_in) for name in LAYERS}
        wanted |= {f"{name}.bias": (s.d_out,) for name in LAYERS if bias}
        wanted |= {"out_proj.weight": (s.d_out, s.d_out), "out_proj.bias": (s.d_out,)}
        if "out_proj.weight" not in facts.parameters:
            x, state = draw(s.B, s.ctx, s.d_in), weights_of(draw, s)
            first, second = (layer(attempt.asking(seed=seed), s, state)(x) for seed in (0, 1))
            differ = first.raised is None and second.raised is None and not torch.equal(first.output, second.output)
            expect(not differ, "out_proj is made anew in every call: nothing is learnt", "params_not_registered")
            hidden = facts.parameters.keys() <= wanted.keys() and "out_proj.weight" not in first.module.unloaded
            told = "out_proj has a weight, and no optimiser will ever see it: it is not among the parameters"
            expect(not hidden, told, "params_not_registered")
        judge_parameters(facts.parameters, wanted, s.ctx, f"qkv_bias is {bias}")
        layer(attempt, s, weights_of(draw, s, bias), bias=bias)(draw(s.B, s.ctx, s.d_in)).must_return()


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Compare T with context_length before anything else, and raise a ValueError that names both.",
)
def test_refuses_beyond_context(attempt, draw):
    """refuses more tokens than the context holds"""
    s = sizes_of(draw)
    module, x = layer(attempt, s, weights_of(draw, s)), draw(s.B, s.ctx + 1, s.d_in)
    module(x[:, 1:]).must_return()
    what = f"T = {s.ctx + 1} with a context of {s.ctx}"
    assert_refused(module(x), what, also=("RuntimeError",), suspect="context_unchecked")


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Take d_out % num_heads in __init__, and raise a ValueError that names both."
)
def test_refuses_uneven_heads(attempt, draw):
    """refuses, when it is made, a d_out that does not divide into heads"""
    s = sizes_of(draw)
    layer(attempt, s, weights_of(draw, s))(draw(s.B, s.ctx, s.d_in)).must_return()  # who refuses everything?
    for d_out, nh in ((s.d_out + 1, s.nh), (s.nh, s.d_out)):
        made = attempt.module("MultiHeadAttention", s.d_in, d_out, s.ctx, nh).built()
        assert_refused(made, f"d_out = {d_out} with num_heads = {nh}", suspect="divisibility_unchecked")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="F.dropout is awake unless you tell it otherwise; nn.Dropout asks the module.",
)
def test_dropout_sleeps(attempt, draw):
    """leaves dropout out in eval mode"""
    s = sizes_of(draw)
    state, x = weights_of(draw, s), draw(s.B, s.T, s.d_in)
    answer = layer(attempt.asking(runs=2), s, state)(x)
    plain, again = answer.outputs
    steady = answer.reply.mutated or (moved(plain, again) <= 1e-5).all()
    if not steady:
        deaf = weights_without_effect(lambda weights: layer(attempt.asking(random=True), s, weights)(x), state)
        told = f"; {', '.join(deaf)} changes nothing: another is made in every call" if deaf else ""
        fault = "params_not_registered" if deaf else ""
        expect(False, f"even without dropout the same input gives two answers{told}", fault)
    answer = layer(attempt.asking(random=True, runs=2), s, state, dropout=0.5)(x)
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
        not (unmoved and outcomes <= 16),
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
    s = sizes_of(draw, nh=2)
    state = passing_through(weights_of(draw, s), s)

    def ask(p):
        return layer(attempt.asking(random=True), s, state, dropout=p)

    awake, asleep = dropped(ask, draw(1, 1, s.d_in))  # one token: one weight a head, 1 or struck out
    struck, kept = near(awake, 0 * asleep), near(awake, asleep / (1 - P))
    whole = (struck | kept).all() and len(struck.flatten(1).unique(dim=0)) <= 2**s.nh
    if not whole:
        judge_misplaced(ask, draw(1, 2, s.d_in), unmoved=near(awake, asleep).all())
    expect(whole, "with one token every head should give all 0 or all of its value scaled up by 1 / (1 − p)")
    share = float(struck.double().mean())
    expect(abs(share - P) <= 0.154, f"with dropout = {P} a share of {share:.2f} is dropped")
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
    layer(attempt, s, state)(draw(s.B, s.ctx, s.d_in)).must_return()  # what does not run at home cannot move
    module = layer(attempt.asking(watch=True), s, state).on("meta")
    answer = module(torch.empty(s.B, s.ctx, s.d_in, dtype=torch.float64, device="meta"))
    seen, ends = answer.reply.operations, {out.device for out in answer.reply.outputs} - {None}
    if not STRANDED.search(answer.message) and not (seen and seen.mixed) and ends <= {"meta"}:
        return
    facts = answer.reply.modules[0] if answer.reply.modules else None
    plain = facts and [t.shape for t in facts.plain.values() if t.device != "meta" and s.ctx in t.shape[-2:]]
    expect(not plain, f"the module moved, and a plain tensor {plain and plain[0]} stayed behind", "mask_not_moved")
    registered = facts is None or all(f"{name}.weight" in facts.parameters for name in (*LAYERS, "out_proj"))
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
    answers = {dtype: layer(attempt.asking(dtype=dtype), s, state)(x) for dtype in ("float32", "float64")}
    failing = [dtype for dtype, answer in answers.items() if answer.raised is not None]
    registered = all(f"{name}.weight" in answers["float32"].module.parameters for name in (*LAYERS, "out_proj"))
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
    exact = layer(reference, s, state)(x)
    for dtype in HALF_PRECISION:
        assert_near(layer(attempt.asking(dtype="float32", autocast=dtype), s, state)(x), exact)
