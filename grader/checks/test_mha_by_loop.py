"""Hidden checks of the loop over heads.

The function computes causal attention, one head at a time, from a given box of weights.
"""

from functools import partial
from types import SimpleNamespace

import torch

from manyheads.checks import (
    Evidence,
    Listed,
    Sizes,
    StandIn,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_shape,
    assert_tensor,
    assert_unmutated,
    changed_positions,
    check,
    expect,
    function_contract,
    replace_sizes,
)
from manyheads.checks.module_expectations import expect_gradients, is_cut

from ._causal_attention import FusedProjection
from ._conditions import of_module
from ._functions import evidence_of_fixed_sizes
from ._modules import width_of_heads

SIZES = Sizes(B=[7], T=[9, 11], nh=[5], hd=[6], C=width_of_heads)
# more heads and tokens than anybody tries by hand
LARGE = Sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(4, 6))
# With as many tokens as channels of a head, a product without the transpose fits, too.
TIED = [Sizes(B=[1, 5], nh=(2, 4), hd=hd) for hd in ([8, 9], [10, 11])]
LESSONS = ((2, 8, 4, 16), (2, 5, 3, 4))  # B, T, nh, hd of the lesson and of its example


def box(s, weights):
    """Return the box of weights that an attempt is given."""
    linears = {name.removesuffix(".weight"): weight for name, weight in weights.items()}
    return StandIn(linears, {"n_head": s.nh, "head_dim": len(linears["proj"]) // s.nh})


def layer(implementation, s, weights):
    """Return the function with this box of weights: it is called with x, as a module is."""
    return partial(implementation.mha_by_loop, box(s, weights))


MODULE = FusedProjection(SIZES, layer)


def checked_output(attempt, s, weights, x):
    """Return the output, and fail unless its shape is right."""
    answer = attempt.mha_by_loop(box(s, weights), x)
    assert_shape(answer, x.shape)
    return answer.output


def mean_of_past(weights, x):
    """Return the mean of the values so far, projected: the answer to queries of zeros."""
    *_, v = (x @ rows.T for rows in weights["qkv.weight"].chunk(3))
    counts = torch.arange(1, x.shape[1] + 1, dtype=torch.float64)[:, None]
    return v.cumsum(dim=1) / counts @ weights["proj.weight"].T


def where_changed(baseline, after, axis):
    """Return the positions along the axis at which two outputs differ. NaN equals NaN."""
    baseline, after = (output.nan_to_num(nan=1e30) for output in (baseline, after))
    return changed_positions(baseline, after, axis, tolerance=1e-5)


@check(
    points=0.25,
    layer="shape",
    hint="Each head gives (B, T, head_dim). What do n_head of them make, side by side?",
)
def test_shape(attempt, sizes, weights, x):
    """gives (B, T, C)"""
    weights_box = box(sizes, weights)
    answer = attempt.mha_by_loop(weights_box, x)
    if answer.raised is not None:
        swapped = attempt.with_options(random=True).mha_by_loop(x, weights_box)
        evidence = "the arguments are mha and x, in this order; yours takes x first"
        expect(swapped.raised is not None, evidence, "interface")
    assert_tensor(answer)
    assert_shape(answer, x.shape)


@check(
    points=0.25,
    layer="finite",
    hint="A row that is −inf everywhere, or 0 · −inf, makes NaN. Which row has nothing to see?",
)
def test_finite(attempt, sizes, weights, x):
    """gives numbers everywhere"""
    assert_finite(attempt.mha_by_loop(box(sizes, weights), x))


@check(
    points=0.5,
    layer="causality",
    hint="Token t may look at the tokens 0…t. Fill the other scores with −inf, before the softmax.",
)
def test_causal(attempt, draw, sizes):
    """lets no token see the future"""
    s = sizes
    weights, (x,) = MODULE.low_scores(draw, s)
    baseline = checked_output(attempt, s, weights, x)
    for t in (1, s.T - 2):
        edited = x.clone()
        edited[:, t, 1:] = draw(s.B, s.C - 1)
        positions = where_changed(baseline, checked_output(attempt, s, weights, edited), 1)
        early = [p for p in positions if p < t]
        evidence = Evidence(
            "a change of token {} should reach the tokens {}…{}; in yours it reaches token {}",
            t,
            t,
            s.T - 1,
            Listed(early, " and "),
        )
        expect(not early, evidence)
        expect(
            t in positions, Evidence("a change of token {} does not reach token {} itself", t, t)
        )


@check(
    points=0.25,
    layer="causality",
    hint="The sequences of a batch never meet: which of your steps joins or cuts axis 0?",
)
def test_sequences_apart(attempt, draw, sizes, weights, x):
    """keeps the sequences of a batch apart"""
    s, b = sizes, draw.integer(0, sizes.B - 1)
    edited = x.clone()
    edited[b] = draw(s.T, s.C)
    baseline, after = (checked_output(attempt, s, weights, tokens) for tokens in (x, edited))
    leaks = [p for p in where_changed(baseline, after, 0) if p != b]
    evidence = Evidence(
        "a change of sequence {} of {} also changes what sequence {} gives",
        b,
        s.B,
        leaks and leaks[0],
    )
    expect(not leaks, evidence)


@check(
    points=0.25,
    layer="causality",
    hint="Head h reads channels h·hd … (h+1)·hd − 1 of q, k and v, and writes the same ones.",
)
def test_heads_apart(attempt, draw, sizes, weights, x):
    """keeps the heads apart and in order"""
    # the last head: if the heads are in another order, it is elsewhere
    s, weights, h = sizes, MODULE.passing_on(weights), sizes.nh - 1
    channels = [*range(h * s.hd, s.C)]
    edited = {name: weight.clone() for name, weight in weights.items()}
    for rows, _ in MODULE.rows(edited, s):
        rows[channels] = draw.weights(s.hd, s.C)
    baseline, after = (checked_output(attempt, s, state, x) for state in (weights, edited))
    moved = where_changed(baseline, after, 2)
    evidence = Evidence(
        "new weights for head {} of {} should change channels {}…{} of the joined heads; in yours",
        h,
        s.nh,
        channels[0],
        channels[-1],
    )
    stray = [c for c in moved if c not in channels]
    missed = [c for c in channels if c not in moved]
    stray[3:] = ["more"] if len(stray) > 3 else []
    expect(not stray, Evidence("{} they change channel {}", evidence, Listed(stray, " and ")))
    expect(
        not missed, Evidence("{} channel {} stays as it was", evidence, Listed(missed[:3], " and "))
    )


@check(
    points=0.5,
    layer="values",
    hint="Equal scores make equal weights, whatever the scale: is it the values, the mask or the"
    " projection?",
)
def test_average(attempt, sizes, weights, x):
    """gives a query of zeros the mean of its past, projected"""
    weights["qkv.weight"][: sizes.C] = 0
    assert_matches(attempt.mha_by_loop(box(sizes, weights), x), mean_of_past(weights, x))


@check(
    points=0.25,
    layer="values",
    hint="One token has only itself to look at, and one head has all the channels.",
)
def test_one_of_each(attempt, draw, sizes, weights, x):
    """works for one token, for one head and for many"""
    token = draw(*x[:, :1].shape)
    answer = attempt.mha_by_loop(box(sizes, weights), token)
    assert_matches(answer, mean_of_past(weights, token), "the output for one token")
    for s in (replace_sizes(sizes, nh=1), replace_sizes(sizes, nh=13, hd=2, C=26)):
        weights, (x,) = MODULE.weights_and_inputs(draw, s)
        # so that every head gives the mean of its values, with any scale
        weights["qkv.weight"][: s.C] = 0.0
        answer = attempt.mha_by_loop(box(s, weights), x)
        name = Evidence("the output of {} {}", s.nh, "head" if s.nh == 1 else "heads")
        assert_matches(answer, mean_of_past(weights, x), name)


@check(
    points=0.5,
    layer="values",
    hint="The usual suspects, in order: the scale, the cut of the stacked weight, the weight not"
    " transposed.",
)
def test_values(attempt, reference, draw):
    """computes the attention of every head"""
    large, tied = LARGE(draw), [sizes(draw) for sizes in TIED]
    tied = [replace_sizes(s, T=s.hd) for s in tied]
    for s in (SIZES(draw), *tied, replace_sizes(SIZES(draw), B=1), large):
        s.C = width_of_heads(s)
        weights, (x,) = MODULE.weights_and_inputs(draw, s)
        weights["qkv.weight"] *= 2
        got, want = (c.mha_by_loop(box(s, weights), x) for c in (attempt, reference))
        assert_matches(got, want, Evidence("with {} heads and {} tokens, the output", s.nh, s.T))


@check(
    points=0.25,
    layer="gradients",
    hint="detach, .data and no_grad forget where numbers came from: use the weights as they are.",
)
def test_gradients(attempt, reference, draw, sizes, weights, x):
    """lets gradients reach x and the weights"""
    s, g = sizes, draw(*x.shape)
    of_weights = {f"args.0.{name}": weight for name, weight in weights.items()}
    tensors = {"args.1": x, **of_weights}  # the names of the gradients
    got, want = (
        c.with_options(cotangent=g, watch=True).mha_by_loop(box(s, weights), x)
        for c in (attempt, reference)
    )
    assert_shape(got, x.shape)
    cut = [name for name in tensors if got.gradient(name) is None]
    operations = got.reply.operations
    # If a layer of torch was given copies of the weights, a gradient can reach x alone.
    if cut == [*of_weights] and operations is not None and operations.fused:
        assert_gradients_match(got, want, "args.1")
        return

    def output(new_weights, tokens):
        return checked_output(
            attempt, s, dict(zip(weights, new_weights.values(), strict=True)), tokens
        )

    for name in cut:
        edited = {**tensors, name: tensors[name] + draw(*tensors[name].shape)}
        used = bool((output(edited, edited.pop("args.1")) != got.output).any())
        reason = "something cuts the graph on the way" if used else "it is not used"
        label = "x" if name == "args.1" else name.removeprefix("args.0.")
        evidence = Evidence("no gradient reaches {}: {}", label, reason)
        expect(False, evidence, "gradient_cut" if used else "")
    # An attempt that writes into the weights has the gradients of other weights.
    expect_gradients(
        got,
        want,
        (*of_weights, "args.1"),
        lambda: not got.reply.mutated and is_cut(output, of_weights, x, g, got, want),
    )


@check(points=0.25, layer="hygiene", hint="Take every size from x and from mha.")
def test_any_size(attempt, draw):
    """works for any sizes"""
    varied = draw.sizes(B=[5, 7], T=[11, 13], nh=[5, 7], hd=[9, 11])

    def fault(sizes):
        B, T, nh, hd = sizes
        s = SimpleNamespace(B=B, T=T, nh=nh, C=nh * hd)
        weights, (x,) = MODULE.weights_and_inputs(draw, s)
        answer = attempt.mha_by_loop(box(s, weights), x)
        return None if answer.raised is None and answer.output.shape == x.shape else answer

    other_sizes = tuple(vars(varied).values())
    failure = fault(other_sizes)
    lesson = failure and next((sizes for sizes in LESSONS if fault(sizes) is None), None)
    if lesson:
        evidence, fixed = evidence_of_fixed_sizes(fault, lesson, other_sizes)
        # If only T fails, the attempt may also have a mask of one size. Only the values can tell
        # these two apart.
        expect(False, evidence, "" if fixed == ["T"] else "hard_coded_shape")
    if failure:
        assert_shape(failure, (varied.B, varied.T, varied.nh * varied.hd))


@check(
    points=0.25,
    layer="hygiene",
    hint="Operations that end in _ or =, and assigned slices, change the tensor itself. No dropout"
    " here.",
)
def test_leaves_its_arguments(attempt, sizes, weights, x):
    """leaves x and the weights as they were, and gives the same answer twice"""
    attempt = attempt.with_options(random=True)
    assert_unmutated(attempt.mha_by_loop(box(sizes, weights), x), suspect="input_mutated")

    def two_outputs(weights):
        answer = attempt.with_options(runs=2).mha_by_loop(box(sizes, weights), x)
        return [output.nan_to_num() for output in answer.outputs]

    if not torch.equal(*two_outputs(weights)):
        # Weights of zeros silence dropout, but not a layer that the attempt made for itself.
        qkv, proj = (torch.zeros_like(w) for w in weights.values())
        silent = {**MODULE.passing_on(weights), "qkv.weight": qkv}, {**weights, "proj.weight": proj}
        why, suspect = "of chance: the weights are all there is, no dropout", "dropout_always_on"
        if any(two_outputs(w)[0].any() for w in silent):
            why, suspect = "of new random weights: use those of mha", "params_not_registered"
        expect(False, Evidence("the same call gives two answers, because {}", why), suspect)


def arguments(draw):
    s = SIZES(draw)
    weights, (x,) = MODULE.weights_and_inputs(draw, s)
    return {"mha_by_loop": {"mha": box(s, weights), "x": x}}


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

PRECONDITIONS = {"mha_by_loop": of_module(MODULE)}
