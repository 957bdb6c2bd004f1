"""Hidden checks of the loop over heads.

The function computes causal attention, one head at a time, from a given box of weights.
"""

from functools import partial
from types import SimpleNamespace

import torch

from manyheads.checks import (
    StandIn,
    assert_gradients_match,
    assert_matches,
    assert_shape,
    assert_unmutated,
    expect,
    function_contract,
)
from manyheads.checks.module_expectations import expect_gradients, is_cut

from ._causal_attention import Subject
from ._conditions import of_module
from ._functions import evidence_of_fixed_sizes
from ._modules import Layers, Sizes, asked_of, changed, joined, without_nan

TARGET = "mha_by_loop"
LESSONS = ((2, 8, 4, 16), (2, 5, 3, 4))  # B, T, nh, hd of the lesson and of its example
WEIGHTS = ("args.0.qkv.weight", "args.0.proj.weight")


def box(s, weights):
    """Return the box of weights that an attempt is given."""
    linears = {name.removesuffix(".weight"): weight for name, weight in weights.items()}
    return StandIn(linears, {"n_head": s.nh, "head_dim": len(linears["proj"]) // s.nh})


class Loop(Subject):
    """The function of this exercise, asked as the fused module is."""

    sizes = Sizes(B=[7], T=[9, 11], nh=[5], hd=[6], C=joined)

    def module(self, implementation, s, weights):
        return partial(implementation.call, TARGET, box(s, weights))


LOOP = Loop()
layer = Layers(LOOP)


def arguments(draw):
    s = LOOP.sizes(draw)
    weights, (x,) = LOOP.weights_and_inputs(draw, s)
    return {TARGET: {"mha": box(s, weights), "x": x}}


def mean_of_past(weights, x):
    """Return the mean of the values so far, projected: the answer to queries of zeros."""
    *_, v = (x @ rows.T for rows in weights["qkv.weight"].chunk(3))
    return (
        v.cumsum(dim=1)
        / torch.arange(1, x.shape[1] + 1, dtype=torch.float64)[:, None]
        @ weights["proj.weight"].T
    )


def where_changed(baseline, after, dim):
    """Return the indices along `dim` at which two outputs differ."""
    baseline, after = baseline.nan_to_num(nan=1e30), after.nan_to_num(nan=1e30)
    differs = (baseline - after).abs() > 1e-5 * baseline.abs().max().clamp_min(1e-30)
    return differs.transpose(0, dim).flatten(1).any(1).nonzero().flatten().tolist()


@layer.shape(0.25, "Each head gives (B, T, head_dim). What do n_head of them make, side by side?")
def test_shape(attempt, s, weights, x):
    """gives (B, T, C)"""
    answer = LOOP.module(attempt, s, weights)(x)
    if (
        answer.raised is not None
        and attempt.asking(random=True).call(TARGET, x, box(s, weights)).raised is None
    ):
        expect(
            False, "the arguments are mha and x, in this order; yours takes x first", "interface"
        )
    expect(
        answer.kind == "tensor",
        f"a tensor was expected; yours returned {answer.returned}",
        "interface",
    )
    assert_shape(answer, (s.B, s.T, s.C))


test_finite = asked_of(
    LOOP,
    without_nan,
    "gives numbers everywhere",
    "A row that is −inf everywhere, or 0 · −inf, makes NaN. Which row has nothing to see?",
)


@layer.causality(
    0.5, "Token t may look at the tokens 0…t. Fill the other scores with −inf, before the softmax."
)
def test_causal(attempt, draw, s):
    """lets no token see the future"""
    weights, (x,) = LOOP.low_scores(draw, s)
    baseline = LOOP.answered(attempt, s, weights, x)
    for t in (1, s.T - 2):
        edited = x.clone()
        edited[:, t, 1:] = draw(s.B, s.C - 1)
        positions = where_changed(baseline, LOOP.answered(attempt, s, weights, edited), 1)
        early = " and ".join(str(p) for p in positions if p < t)
        evidence = (
            f"a change of token {t} should reach the tokens {t}…{s.T - 1}; in yours it reaches"
            f" token {early}"
        )
        expect(not early, evidence)
        expect(t in positions, f"a change of token {t} does not reach token {t} itself")


@layer.causality(
    0.25, "The sequences of a batch never meet: which of your steps joins or cuts axis 0?"
)
def test_sequences_apart(attempt, draw, s, weights, x):
    """keeps the sequences of a batch apart"""
    b = draw.integer(0, s.B - 1)
    edited = x.clone()
    edited[b] = draw(s.T, s.C)
    baseline, after = (LOOP.answered(attempt, s, weights, tokens) for tokens in (x, edited))
    leaks = [p for p in where_changed(baseline, after, 0) if p != b]
    expect(
        not leaks,
        f"a change of sequence {b} of {s.B} also changes what sequence {leaks and leaks[0]} gives",
    )


@layer.causality(
    0.25, "Head h reads channels h·hd … (h+1)·hd − 1 of q, k and v, and writes the same ones."
)
def test_heads_apart(attempt, draw, s, weights, x):
    """keeps the heads apart and in order"""
    # the last head: if the heads are in another order, it is elsewhere
    weights, h = LOOP.passing_on(weights), s.nh - 1
    channels = [*range(h * s.hd, (h + 1) * s.hd)]
    edited = {name: weight.clone() for name, weight in weights.items()}
    for rows, _ in LOOP.rows(edited, s):
        rows[channels] = draw.weights(s.hd, s.C)
    baseline, after = (LOOP.answered(attempt, s, state, x) for state in (weights, edited))
    moved_channels = where_changed(baseline, after, 2)
    evidence = (
        f"new weights for head {h} of {s.nh} should change channels {channels[0]}…{channels[-1]} of"
        " the joined heads; in yours"
    )
    stray, missed = (
        [str(c) for c in moved_channels if c not in channels],
        [str(c) for c in channels if c not in moved_channels],
    )
    expect(
        not stray,
        f"{evidence} they change channel {' and '.join(stray[:3])}{' and more' * bool(stray[3:])}",
    )
    expect(not missed, f"{evidence} channel {' and '.join(missed[:3])} stays as it was")


@layer.values(
    0.5,
    "Equal scores make equal weights, whatever the scale: is it the values, the mask or the"
    " projection?",
)
def test_average(attempt, s, weights, x):
    """gives a query of zeros the mean of its past, projected"""
    weights["qkv.weight"][: s.C] = 0
    assert_matches(LOOP.module(attempt, s, weights)(x), mean_of_past(weights, x))


@layer.values(0.25, "One token has only itself to look at, and one head has all the channels.")
def test_one_of_each(attempt, draw, s, weights):
    """works for one token, for one head and for many"""
    alone = draw(s.B, 1, s.C)
    assert_matches(
        LOOP.module(attempt, s, weights)(alone),
        mean_of_past(weights, alone),
        "the output for one token",
    )
    for n in (changed(s, nh=1), changed(s, nh=13, hd=2, C=26)):
        weights, (x,) = LOOP.weights_and_inputs(draw, n)
        # so that every head gives the mean of its values, with any scale
        weights["qkv.weight"][: n.C] = 0.0
        label = f"the output of {n.nh} {'head' if n.nh == 1 else 'heads'}"
        assert_matches(LOOP.module(attempt, n, weights)(x), mean_of_past(weights, x), label)


@layer.values(
    0.5,
    "The usual suspects, in order: the scale, the cut of the stacked weight, the weight not"
    " transposed.",
)
def test_values(agree, draw):
    """computes the attention of every head"""
    # more heads and tokens than anybody tries by hand
    large = draw.sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(4, 6))
    # With as many tokens as channels of a head, a product without the transpose fits, too.
    tied = [draw.sizes(B=[1, 5], nh=(2, 4), hd=hd) for hd in ([8, 9], [10, 11])]
    tied = [changed(sizes, T=sizes.hd, C=joined(sizes)) for sizes in tied]
    for s in (
        LOOP.sizes(draw),
        *tied,
        changed(LOOP.sizes(draw), B=1),
        changed(large, C=joined(large)),
    ):
        weights, inputs = LOOP.weights_and_inputs(draw, s)
        weights["qkv.weight"] *= 2
        agree(s, weights, inputs, f"with {s.nh} heads and {s.T} tokens, the output")


@layer.gradients(
    0.25, "detach, .data and no_grad forget where numbers came from: use the weights as they are."
)
def test_gradients(attempt, reference, draw, s, weights, x):
    """lets gradients reach x and the weights"""
    g = draw(s.B, s.T, s.C)
    got, want = LOOP.both(
        *(
            implementation.asking(cotangent=g, watch=True)
            for implementation in (attempt, reference)
        ),
        s,
        weights,
        (x,),
    )
    assert_shape(got, x.shape)
    cut = [name for name in ("args.1", *WEIGHTS) if got.gradient(name) is None]
    operations = got.reply.operations
    # If a layer of torch was given copies of the weights, a gradient can reach x alone.
    if tuple(cut) == WEIGHTS and operations is not None and operations.fused:
        assert_gradients_match(got, want, "args.1")
        return
    for name in cut:
        label = {"args.1": "x"}.get(name, name.removeprefix("args.0."))
        edited = {**weights, "x": x}
        edited[label] = edited[label] + draw(*edited[label].shape)
        used = bool((LOOP.answered(attempt, s, edited, edited.pop("x")) != got.output).any())
        reason = "something cuts the graph on the way" if used else "it is not used"
        expect(False, f"no gradient reaches {label}: {reason}", "gradient_cut" if used else "")
    named_weights = {f"args.0.{name}": weight for name, weight in weights.items()}

    def output(new_weights, x):
        return LOOP.answered(attempt, s, dict(zip(weights, new_weights.values(), strict=True)), x)

    # An attempt that writes into the weights has the gradients of other weights.
    cut = not got.reply.mutated
    expect_gradients(
        got,
        want,
        (*WEIGHTS, "args.1"),
        lambda: cut and is_cut(output, named_weights, x, g, got, want),
    )


@layer.hygiene(0.25, "Take every size from x and from mha.")
def test_any_size(attempt, draw):
    """works for any sizes"""
    varied = draw.sizes(B=[5, 7], T=[11, 13], nh=[5, 7], hd=[9, 11])

    def fault(sizes):
        B, T, nh, hd = sizes
        s = SimpleNamespace(B=B, T=T, nh=nh, C=nh * hd)
        weights, (x,) = LOOP.weights_and_inputs(draw, s)
        answer = LOOP.module(attempt, s, weights)(x)
        return None if answer.raised is None and answer.output.shape == x.shape else answer

    other_sizes = tuple(vars(varied).values())
    failure = fault(other_sizes)
    lesson = failure and next((sizes for sizes in LESSONS if fault(sizes) is None), None)
    if lesson:
        evidence, fixed = evidence_of_fixed_sizes(fault, lesson, other_sizes)
        # If only T fails, the attempt may also have a mask of one size. Only the values can tell
        # these two apart.
        expect(False, evidence, "" if [name[:1] for name in fixed] == ["T"] else "hard_coded_shape")
    if failure:
        assert_shape(failure, (varied.B, varied.T, varied.nh * varied.hd))


@layer.hygiene(
    0.25,
    "Operations that end in _ or =, and assigned slices, change the tensor itself. No dropout"
    " here.",
)
def test_leaves_its_arguments(attempt, s, weights, x):
    """leaves x and the weights as they were, and gives the same answer twice"""
    assert_unmutated(
        LOOP.module(attempt.asking(random=True), s, weights)(x), suspect="input_mutated"
    )
    asking = attempt.asking(random=True, runs=2)
    if not torch.equal(
        *(output.nan_to_num() for output in LOOP.module(asking, s, weights)(x).outputs)
    ):
        # Weights of zeros silence dropout, but not a layer that the attempt made for itself.
        qkv, proj = (torch.zeros_like(w) for w in weights.values())
        silent = {**LOOP.passing_on(weights), "qkv.weight": qkv}, {**weights, "proj.weight": proj}
        why, suspect = "of chance: the weights are all there is, no dropout", "dropout_always_on"
        if any(bool(LOOP.module(asking, s, w)(x).output.nan_to_num(nan=0.0).any()) for w in silent):
            why, suspect = "of new random weights: use those of mha", "params_not_registered"
        expect(False, f"the same call gives two answers, because {why}", suspect)


CONTRACT = function_contract(
    arguments,
    points=0.25,
    dtype=(
        "returns the dtype that it is given",
        "A new tensor is float32 unless you say otherwise: dtype=x.dtype.",
    ),
    stays_on_the_device=(
        "stays on the device of x",
        "A mask, or any other new tensor, needs device=x.device.",
    ),
)

PRECONDITIONS = {TARGET: of_module(LOOP)}
