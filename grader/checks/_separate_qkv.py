"""Shared checks of causal attention with W_query, W_key and W_value, for one head and several."""

import re
from functools import partial

import torch

from manyheads.checks import assert_gradients_match, assert_matches, assert_shape, expect, moved
from manyheads.checks.gradients import is_cut, weights_without_effect

from . import _again, _modules
from . import _layers as layer
from ._dropout import LONE_COPIES, RARE, copies_of, expect_gradients_awake, is_dropped
from ._modules import changed
from ._moved_later import moved_after_a_call

LAYERS = ("W_query", "W_key", "W_value")
MISFIT = re.compile(
    r"must match|not broadcastable|expanded size|doesn't match the broadcast|inconsistent tensor"
)
STRIDES = re.compile("view size is not compatible")
STRANDED = re.compile(r"expected device|same device|CUDA|NVIDIA")


class Subject(_modules.Subject):
    """The module that an exercise asks for, and the sizes that it is tried with.

    Attributes:
        sizes: T is shorter than the context, `block`. C is the width of the input. nh is 1 if there
            is a single head.
        large_sizes: sizes that are larger than students try by hand.
        square_sizes: sizes for an input that is as wide as the output.
        familiar: rows of B, T, d_in, d_out, and of nh if there are several heads: sizes that
            attempts often have written in.
        several: whether there are several heads, with an output projection.
    """

    room = "a context of"
    flattening = 0.0625
    projections = tuple((f"{name}.weight", 1, "nh") for name in LAYERS)

    def __init__(self, name, sizes, large_sizes, square_sizes, familiar, several=False):
        self.name, self.familiar, self.several = name, familiar, several
        self.sizes, self.large_sizes, self.square_sizes = sizes, large_sizes, square_sizes
        self.arguments = (("d_in", "C"), ("d_out", "d_out"), ("context_length", "block"))
        self.arguments += (("num_heads", "nh"),) * several

    def tied_sizes(self, s):
        """Return the same sizes with wider heads, and as many tokens as channels of a head."""
        hd = s.d_out // s.nh + 2
        return changed(s, T=hd, d_out=hd * s.nh)

    def shapes(self, s, bias=True, **options):
        shapes = {f"{name}.weight": (s.d_out, s.C) for name in LAYERS}
        shapes |= {f"{name}.bias": (s.d_out,) for name in LAYERS if bias}
        return shapes | (
            {"out_proj.weight": (s.d_out, s.d_out), "out_proj.bias": (s.d_out,)}
            if self.several
            else {}
        )

    def module(self, implementation, s, state, *, bias=True, **options):
        return super().module(implementation, s, state, qkv_bias=bias, **options)

    def low_scores(self, draw, s, **options):
        state, inputs = super().low_scores(draw, s, **options)
        small = {
            name: self.flattening * state[name]
            for name in ("W_query.bias", "W_key.bias")
            if name in state
        }
        return state | small, inputs


def works(answer, shape):
    """Return whether the answer is a tensor of this shape."""
    out = answer.reply.outputs
    return answer.raised is None and bool(out) and out[0].shape == tuple(shape)


@layer.shape(0.25)
def shape(subject, attempt, draw, s):
    """gives (B, T, d_out), for any batch and down to a single token"""
    state = subject.weights(draw, s, bias=False)
    for B, T, *nh in (
        ((s.B, s.block, s.nh), (1, 1, 1)) if subject.several else ((s.B, s.block), (1, 1))
    ):
        answer = attempt.module(subject.name, s.C, s.d_out, T, *nh).loaded(state)(draw(B, T, s.C))
        refused = answer.raised is not None and answer.raised.stage == "build"
        is_wrong = (
            not works(answer, (B, T, s.d_out))
            and not STRIDES.search(answer.message)
            and not refused
        )
        # familiar sizes for which it works: perhaps for one batch size or one number of tokens
        # alone
        working_sizes = []
        for b, t, d_in, d_out, *heads in subject.familiar if is_wrong else ():
            module = attempt.asking(random=True).module(subject.name, d_in, d_out, t, *heads)
            if works(module(draw(b, t, d_in)), (b, t, d_out)):
                working_sizes.append((b, t))
        if 1 in (len({b for b, _ in working_sizes}), len({t for _, t in working_sizes})):
            case = f"B = {B}, T = {T}, num_heads = {nh[0]}" if nh else f"B = {B} with T = {T}"
            expect(False, f"it works for some sizes, but not for {case}", "hard_coded_shape")
        assert_shape(answer, (B, T, s.d_out))


@layer.shape(
    0.25, "The mask is made for the longest sequence. Which corner of it do T tokens need?"
)
def shorter(subject, attempt, draw, s):
    """takes fewer tokens than the context holds"""
    state, (x,) = subject.weights_and_inputs(draw, changed(s, T=s.block))
    module = subject.module(attempt, s, state)
    answer = module(x[:, : s.T])
    if not works(answer, (s.B, s.T, s.d_out)) and works(module(x), (s.B, s.block, s.d_out)):
        misfit = MISFIT.search(answer.message)
        evidence = f"a full context of {s.block} tokens works; {s.T} tokens do not"
        expect(False, evidence, "mask_not_sliced" if misfit else "")
    assert_shape(answer, (s.B, s.T, s.d_out))


@layer.causality(
    0.25,
    "Print the mask for T = 4. Which entries are hidden, and are they hidden before the softmax?",
)
def future(subject, attempt, draw, s):
    """keeps the past as it was when the future is edited"""
    state, (x,) = subject.low_scores(draw, s)
    for cut in (1, s.T - 2):
        edited = x.clone()
        edited[:, cut:, 1:] = 2 * draw(s.B, s.T - cut, s.C - 1)
        baseline, after = (subject.answered(attempt, s, state, tokens) for tokens in (x, edited))
        early = (moved(baseline, after)[:, :cut] > 1e-5).any(0).nonzero().flatten().tolist()
        expect(
            not early,
            f"the tokens from position {cut} on were edited, and the answers at positions {early}"
            " moved",
        )


@layer.causality(0.25, "The diagonal is visible too. And does any step mix the first axis?")
def sees_past(subject, attempt, draw, s, weights, x):
    """lets each token see itself and all of its past, and no other sequence"""
    edited = x.clone()
    edited[0, 1] = draw(s.C)
    baseline, after = (subject.answered(attempt, s, weights, tokens) for tokens in (x, edited))
    moves = moved(baseline, after)
    leaks = (moves[1:] > 1e-5).any(1).nonzero().flatten().tolist()
    expect(not leaks, "one sequence of the batch was edited, and the answers for another one moved")
    blind = (moves[0, 1:] < 1e-9).nonzero().flatten().tolist()
    evidence = (
        f"the token at position 1 was edited, and the answers at positions {[t + 1 for t in blind]}"
        " stayed"
    )
    expect(not blind, evidence)


@layer.causality(
    0.25, "A hidden score must lose against every visible one, however low. What is e to its power?"
)
def hidden_for_good(subject, attempt, draw, s):
    """hides the future even where all scores are low"""
    state, (x,) = subject.low_scores(draw, s)
    module, edited = subject.module(attempt, s, state), x.clone()
    edited[:, 2:, 1:] = draw(s.B, s.T - 2, s.C - 1)
    leak = moved(module(x).output, module(edited).output)[:, :2].max()
    expect(leak <= 1e-5, "with low scores everywhere the future shows through")


@layer.values(
    0.75, "Do the second token of a short sentence by hand, and print scores and weights beside it."
)
def values(subject, attempt, reference, draw):
    """mixes the values by the softmax of the scaled scores"""
    alone = "sees only itself and should become its own value row"
    if subject.several:
        alone = "should be out_proj of its own value row and is not"
    ordinary, low, large = subject.sizes(draw), subject.sizes(draw), subject.large_sizes(draw)
    # With as many tokens as channels of a head, a product without the transpose fits, too. There
    # are two such cases, so that an attempt which needs these sizes to be equal does not look like
    # one with a hard-coded size. Another case has a single sequence.
    tied = [changed(ordinary, T=ordinary.d_out // ordinary.nh), subject.tied_sizes(ordinary)]
    for s in (ordinary, low, *tied, changed(ordinary, B=1), large):
        case = (subject.low_scores if s is low else subject.weights_and_inputs)(draw, s)
        got, want = (answer.output for answer in subject.both(attempt, reference, s, *case))
        assert_shape(got, want.shape)
        starts_right = (got[:, 0] - want[:, 0]).abs().max() <= 1e-5 * want.abs().max()
        assert_matches(got, want, "the output" if starts_right else f"token 0 {alone}; the output")


@layer.values(0.25)
def square(subject, attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = subject.square_sizes(draw)
    s.C = s.d_out = getattr(s, "d_out", s.C)
    subject.assert_matches(
        attempt,
        reference,
        s,
        *subject.low_scores(draw, changed(s, T=s.block), bias=False),
        bias=False,
    )


@layer.gradients(0.25, "Is there a detach, a .data or a no_grad between x and the output?")
def gradients(subject, attempt, reference, draw, s):
    """lets gradients through to x and to every weight"""
    (state, (x,)), g = subject.low_scores(draw, s), draw(s.B, s.T, s.d_out)
    got, want = (subject.module(c.asking(cotangent=g), s, state)(x) for c in (attempt, reference))
    assert_shape(got, g.shape)
    names = [*(name for name in state if name in got.module.parameters), "args.0"]
    try:
        assert_gradients_match(got, want, *names)
    except AssertionError as failure:
        again = subject.module(attempt.asking(seed=1), s, state)(x)
        # Weights that are made anew in forward have no gradients to compare. If two weights are one
        # tensor, only one of the two can be changed.
        steady = (
            torch.equal(again.output, got.output) and got.module.parameters.keys() >= state.keys()
        )
        if steady and is_cut(
            lambda w, y: subject.module(attempt, s, w)(y).output, state, x, g, got, want
        ):
            expect(
                False, f"{failure}; your gradients are not those of your own output", "gradient_cut"
            )
        raise
    expect_gradients_awake(subject.module(attempt.asking(cotangent=g), s, state, dropout=RARE), x)


def parameters_of(subject, attempt, draw, s, bias):
    """Return the parameters of a new module, and judge the arguments dropout and qkv_bias.

    Args:
        bias: whether the module is made with biases. If not, qkv_bias is not given.
    """
    arguments = subject.given_arguments(s) | ({"dropout": 0.0, "qkv_bias": True} if bias else {})
    module = attempt.module(subject.name, **arguments)
    facts = module.built().module
    if not bias and "W_query.bias" in facts.parameters:
        evidence = (
            "without a word about qkv_bias the layers have a bias: its default should be False"
        )
        without_bias = attempt.module(subject.name, **arguments, qkv_bias=False).built()
        expect("W_query.bias" in without_bias.module.parameters, evidence, "interface")
    if not facts.parameters:
        module(draw(s.B, s.block, s.C)).must_return()  # raises if nothing is written yet
    by_position = attempt.module(
        subject.name, *subject.given_arguments(s).values(), 0.0, True
    ).built()
    if bias and by_position.raised is None and "W_query.bias" in facts.parameters:
        has_bias = "W_query.bias" in by_position.module.parameters
        expect(
            has_bias,
            "given by position, the last two arguments are not dropout and qkv_bias",
            "interface",
        )
    return facts.parameters


def judge_names(actual, expected, ctx, setting):
    """Fail unless the names are exactly the expected ones. The difference decides the suspect."""
    missing, extra = (
        [n for n in expected if n not in actual],
        [n for n in actual if n not in expected],
    )
    masks = [n for n in extra if actual[n].shape[-2:] == (ctx, ctx)]
    expect(
        not masks,
        "a tensor of the mask's shape is among the parameters: it would be trained",
        "mask_is_parameter",
    )
    strays = [n for n in extra if n.rpartition(".")[0] in LAYERS and n.endswith(".bias")]
    expect(not strays, f"{setting}, and {', '.join(strays)} is there all the same", "proj_bias")
    silent = [n for n in missing if n.endswith(".bias") and n.replace(".bias", ".weight") in actual]
    expect(not silent, f"{setting}, and there is no {', '.join(silent)}", "proj_bias")
    lost = f"{', '.join(missing)} cannot be found among the parameters"
    # the values tell whether it is hidden or was never made
    absent = all(n.startswith("out_proj") for n in missing)
    suspect = "" if absent else "params_not_registered"
    expect(not missing or extra, f"{lost}: no optimiser will see them by that name", suspect)
    expect(not missing, f"{lost}, though {len(extra)} of other names can", "params_extra")
    layers = "four" if "out_proj.weight" in expected else "three"
    expect(
        not extra,
        f"there are {len(extra)} parameters beyond those of the {layers} layers",
        "params_extra",
    )


@layer.hygiene(0.25)
def parameters(subject, attempt, draw, s):
    """learns W_query, W_key and W_value and nothing else"""
    for bias in (False, True):
        actual, expected = parameters_of(subject, attempt, draw, s, bias), subject.shapes(s, bias)
        if subject.several and "out_proj.weight" not in actual:
            x, state = draw(s.B, s.block, s.C), subject.weights(draw, s)
            answer, second = (
                subject.module(attempt.asking(seed=seed), s, state)(x) for seed in (0, 1)
            )
            differ = (
                answer.raised is None
                and second.raised is None
                and not torch.equal(answer.output, second.output)
            )
            expect(
                not differ,
                "out_proj is made anew in every call: nothing is learnt",
                "params_not_registered",
            )
            hidden = (
                actual.keys() <= expected.keys() and "out_proj.weight" not in answer.module.unloaded
            )
            evidence = (
                "out_proj has a weight, and no optimiser will ever see it: it is not among the"
                " parameters"
            )
            expect(not hidden, evidence, "params_not_registered")
        judge_names(actual, expected, s.block, f"qkv_bias is {bias}")
        for name, shape in expected.items():
            strange = set(actual[name].shape) - {
                size for dims in expected.values() for size in dims
            }
            message = (
                f"{name} should have shape {shape}; yours has {tuple(actual[name].shape)}, whatever"
                " is asked for"
            )
            expect(subject.several or not strange, message, "hard_coded_shape")
            assert_shape(torch.empty(actual[name].shape, device="meta"), shape, name)
        state, x = subject.weights(draw, s, bias=bias), draw(s.B, s.block, s.C)
        subject.module(attempt, s, state, bias=bias)(x).must_return()


@layer.hygiene(
    0.25,
    "Compare T with context_length before anything else, and raise a ValueError that names both.",
)
def refuses_beyond_context(subject, attempt, draw, s):
    """refuses more tokens than the context holds"""
    _modules.refuses_too_long(subject, attempt, draw, s)


@layer.hygiene(
    0.25, "F.dropout is on unless you turn it off; nn.Dropout follows the module's mode."
)
def dropout_sleeps(subject, attempt, s, weights, x):
    """leaves dropout out in eval mode"""
    answer = subject.module(attempt.asking(runs=2), s, weights)(x)
    plain, again = answer.outputs
    steady = answer.reply.mutated or (moved(plain, again) <= 1e-5).all()
    if not steady:
        deaf = weights_without_effect(
            lambda w: subject.module(attempt.asking(random=True), s, w)(x), weights
        )
        explanation = (
            f"; {', '.join(deaf)} changes nothing: another is made in every call" if deaf else ""
        )
        module = subject.module(attempt.asking(random=True), s, weights)
        alone = (module.asking(seed=seed)(copies_of(x[:1, :1])).output for seed in (0, 1))
        awake = not deaf and is_dropped(*alone, heads=s.nh)
        suspect = "dropout_always_on" if awake else ""
        if deaf:
            suspect = "params_not_registered"
        evidence = f"even without dropout the same input gives two answers{explanation}"
        expect(False, evidence, suspect)
    answer = subject.module(attempt.asking(random=True, runs=2), s, weights, dropout=0.5)(x)
    for once in answer.outputs[: 1 if answer.reply.mutated else 2]:
        same = once.shape == plain.shape and bool((moved(plain, once) <= 1e-5).all())
        expect(same, "in eval mode dropout = 0.5 changes the output", "dropout_always_on")


P = 0.25


@layer.hygiene(0.25, "Dropout belongs between the softmax and the values.")
def dropout_on_weights(subject, attempt, draw):
    """drops attention weights in training, and scales up the rest"""
    s = subject.sizes(draw, nh=2) if subject.several else subject.sizes(draw)

    def asking(s):
        return partial(
            subject.module,
            attempt.asking(random=True),
            s,
            subject.passing_on(subject.weights(draw, s)),
        )

    ask = asking(s)
    awake, asleep = dropped(ask, draw(1, 1, s.C))  # one token: each head has one weight
    x = draw(1, 2, s.C)
    two = dropped(ask, x)
    # A few copies in eval mode, with which `course check` compares the outcomes of dropout. x has
    # two tokens, so few that the fault dictionary can hold all possible outcomes. An attempt that
    # mixes up the sequences of a batch answers wrongly here.
    ask(dropout=0.0)(x.expand(3, *x.shape[1:]).contiguous()).must_return()
    # If single channels are dropped, a part of a single head is left, which `course check` sees.
    if subject.several:
        dropped(asking(changed(s, nh=1, hd=s.d_out)), draw(1, 1, s.C))
    struck, survived = (near(awake, answer) for answer in (0 * asleep, asleep / (1 - P)))
    drops_heads = (struck | survived).all() and len(struck.flatten(1).unique(dim=0)) <= 2**s.nh
    if not drops_heads:
        judge_rate(ask, x, s.nh)
        scaled_twice = near(awake, asleep / (1 - P) ** 2)
        evidence = (
            "what survives is scaled up twice, by 1 / (1 − p)²: two dropouts act, and one is"
            " asked for"
        )
        acts_twice = scaled_twice.any() and (struck | scaled_twice).all()
        expect(not acts_twice, evidence, "dropout_extra")
        judge_misplaced(ask, x, *two, unmoved=near(awake, asleep).all(), heads=s.nh)
    of_head = "every head" if subject.several else "the head"
    expect(
        drops_heads,
        f"with one token {of_head} should give all 0 or all of its value scaled up by 1 / (1 − p)",
    )
    share = float(struck.double().mean())
    # Each head is dropped or kept 192 times. A right attempt is this far off once in 8e9 runs. A
    # smaller error of the share shows in the mean below.
    expect(
        abs(share - P) <= (0.154 if subject.several else 0.21),
        f"with dropout = {P}, {share:.0%} is dropped",
    )
    awake, asleep = two
    error = 8 * awake.std(0) / len(awake) ** 0.5 + 1e-5 * asleep.abs().max()
    expect(
        ((awake.mean(0) - asleep[0]).abs() <= error).all(),
        "on average training does not give what eval mode gives",
    )
    awake, asleep = (
        module(x.expand(LONE_COPIES, -1, -1).contiguous()).output
        for module in (ask().training(), ask())
    )
    evidence = "made without a word about dropout it drops in training all the same"
    expect(near(awake, asleep).all(), evidence, "dropout_rate_fixed")


def dropped(ask, x):
    """Return the answers to copies of one sequence in training, and the answer in eval mode.

    The shapes are (copies, T, d) and (1, T, d).

    Args:
        ask: gives the module for a dropout rate.
        x: the sequence, (1, T, C).
    """
    copies = copies_of(x)
    awake = ask(dropout=P).training()(copies).output
    asleep = ask(dropout=0.0)(x).output
    assert_shape(asleep, (*x.shape[:2], *asleep.shape[-1:]))
    assert_shape(awake, (len(copies), *asleep.shape[1:]))
    return awake, asleep


def near(a, b):
    """Return where a and b agree to 1e-4 of the largest number of b."""
    return (a - b).abs() <= 1e-4 * b.abs().max()


def judge_rate(ask, x, heads):
    """Fail if a module with dropout = 0 drops in training mode, or in eval mode as well.

    A difference between copies need not be dropout: sequences that are mixed up differ, too. Chance
    shows at another seed.
    """

    def at_two_seeds(module):
        return tuple(module.asking(seed=seed)(copies_of(x)).output.nan_to_num() for seed in (0, 1))

    awake, asleep = at_two_seeds(ask(dropout=0.0).training()), at_two_seeds(ask(dropout=0.0))
    calm = near(*asleep).all()
    own_rate = "made with dropout = 0 it drops in training all the same"
    expect(not calm or near(*awake).all(), own_rate, "dropout_rate_fixed")
    evidence = "made with dropout = 0 it drops all the same"
    expect(calm or not is_dropped(*asleep, heads=heads), evidence, "dropout_rate_fixed")


def judge_misplaced(ask, x, awake, asleep, unmoved, heads):
    """Fail with the place where dropout acts, if it does not act on the weights.

    Args:
        x: a sequence of two tokens.
        awake: the answers to copies of x in training mode.
        asleep: the answer to x in eval mode.
        unmoved: whether training mode changes nothing for a single token.
        heads: the number of heads.
    """
    if unmoved and near(awake, asleep).all():
        eval_too = ask(dropout=0.9)(x.expand(64, *x.shape[1:]).contiguous()).output
        expect(
            False,
            "in training nothing is ever dropped",
            "dropout_missing" if near(eval_too, asleep).all() else "",
        )
    outcomes = len(
        (awake.nan_to_num(1e3)[:, -1] / asleep.abs().max()).mul(1e4).round().unique(dim=0)
    )
    scores = unmoved and outcomes <= 4**heads
    expect(
        not scores,
        "scores are dropped, not weights: what is left sums to 1",
        "dropout_before_softmax",
    )
    scattered = (near(awake, 0 * asleep) | near(awake, asleep / (1 - P))).all()
    evidence = "single channels of the answer are dropped, not whole weights"
    expect(unmoved or not scattered, evidence, "dropout_on_output_only")


@layer.hygiene(0.25, _again.HINT)
def again(subject, attempt, draw, s):
    """answers every call as a fresh instance would"""
    _modules.again(subject, attempt, draw, s)
    _again.judge_modes_again(subject, attempt, draw)


@layer.hygiene(0.25, "A tensor that must move with the module and is not learned: register_buffer.")
def moves(subject, attempt, draw, s):
    """moves to another device as a whole"""
    state, (x,) = subject.weights_and_inputs(draw, changed(s, T=s.block))
    # an attempt that fails on the CPU cannot move
    subject.module(attempt, s, state)(x).must_return()
    module, on_meta = (
        subject.module(attempt.asking(watch=True), s, state),
        torch.empty_like(x, device="meta"),
    )
    judge_moved(
        subject,
        s,
        module.on("meta")(on_meta),
        "and some tensor is made on, or stays on, another device",
    )
    judge_moved(subject, s, module.asking(around=moved_after_a_call([x]))(on_meta), "")


def judge_moved(subject, s, answer, of_fixed_device):
    """Fail unless everything that a moved module needed was on its new device.

    Args:
        of_fixed_device: the evidence of a device that is written into the code; "" if the module
            was moved after a call, because that shows no such device.
    """
    operations, ends = (
        answer.reply.operations,
        {out.device for out in answer.reply.outputs} - {None},
    )
    if (
        not STRANDED.search(answer.message)
        and not (operations and operations.mixed)
        and ends <= {"meta"}
    ):
        return
    facts = answer.reply.modules[0] if answer.reply.modules else None
    plain = facts and [
        t.shape for t in facts.plain.values() if t.device != "meta" and s.block in t.shape[-2:]
    ]
    expect(
        not plain,
        f"the module moved, and a plain tensor {plain and plain[0]} stayed behind",
        "mask_not_moved",
    )
    if not of_fixed_device:
        expect(
            False,
            "the module moved after a call, and a tensor that was made in that call stayed behind",
        )
    registered = subject.is_registered(answer, s)
    expect(False, f"the module moved, {of_fixed_device}", "hard_coded_device" if registered else "")


@layer.hygiene(
    0.25, "Name no dtype in forward, or take x.dtype; and make new tensors in place of x.mul_."
)
def dtype_and_argument(subject, attempt, s, weights, inputs):
    """follows the dtype of its input, and leaves the input as it was"""
    for answer in _modules.dtype_and_argument(subject, attempt, s, weights, inputs):
        assert_shape(answer, (s.B, s.T, s.d_out))
