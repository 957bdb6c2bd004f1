"""Hidden checks of cross-attention with a padding mask."""

from functools import partial

import torch

from manyheads.checks import (
    Evidence,
    Sizes,
    assert_finite,
    assert_same,
    assert_shape,
    changed_positions,
    check,
    expect,
    module_contract,
    relative_change,
    replace_sizes,
)
from manyheads.checks.module_expectations import HINT, judge_again

from . import _modules as shared
from ._conditions import of_module

SIZES = Sizes(
    B=[7],
    T_q=[9, 11],
    T_k=[13, 17],
    nh=[5],
    hd=[6],
    d_query=[14],
    d_context=[19],
    d_out=shared.width_of_heads,
)
# As many queries as keys, and one width, so that sides and axes can be mixed up and still fit.
SQUARE = partial(SIZES, T_k=11, T_q=11, d_query=30, d_context=30)
# A context that is shorter than x.
LARGE = Sizes(
    B=[2],
    T_q=(50, 60),
    T_k=(30, 40),
    nh=[9],
    hd=[7],
    d_query=[20],
    d_context=[17],
    d_out=shared.width_of_heads,
)


class Cross(shared.Subject):
    """The module of this exercise, with its general requirements."""

    name = "CrossAttention"
    arguments = (
        *((width, width) for width in ("d_query", "d_context", "d_out")),
        ("num_heads", "nh"),
    )
    projections = tuple((f"W_{name}.weight", 1, "nh") for name in ("query", "key", "value"))
    sizes = SIZES

    def shapes(self, s, **options):
        read = {"query": s.d_query, "key": s.d_context, "value": s.d_context}
        shapes = {f"W_{name}.weight": (s.d_out, width) for name, width in read.items()}
        return {**shapes, "out_proj.weight": (s.d_out, s.d_out), "out_proj.bias": (s.d_out,)}

    def weights_and_inputs(self, draw, s, scale=1.0, **options):
        """Return weights, and the inputs x, context and keep."""
        x = draw(s.B, s.T_q, s.d_query, scale=scale)
        context = draw(s.B, s.T_k, s.d_context, scale=scale)
        weights, keep = self.weights(draw, s), draw(s.B, s.T_k) > -0.3
        # In every sequence some tokens are real and some are padding, at any position.
        sequence = torch.arange(s.B)
        keep[sequence, sequence % s.T_k] = True
        keep[sequence, (sequence + 3) % s.T_k] = False
        if s.B > 1:  # one token is padding in every sequence, others only in some
            keep[:, -2], keep[:, -1] = False, True
            keep[1::2, 0] = False  # and padding may come first
        return weights, (x, context, keep)

    @check(points=0.25, layer="hygiene", hint=HINT)
    def again(self, attempt, reference, draw):
        """answers every call as a fresh instance would, with keep and without"""
        s = SIZES(draw)
        weights, with_keep = self.weights_and_inputs(draw, s)
        _, (*without, _) = self.weights_and_inputs(draw, s)
        _, resized = self.weights_and_inputs(draw, replace_sizes(s, B=3, T_q=13, T_k=9))
        judge_again(layer(attempt, s, weights), with_keep, without, resized)


MODULE = Cross()


def layer(implementation, s, weights):
    """Return the module of these sizes with these weights."""
    make = implementation.CrossAttention
    return make(s.d_query, s.d_context, s.d_out, s.nh).with_parameters(weights)


def output(implementation, s, weights, x, context, keep):
    """Return the output, and fail unless its shape is right."""
    answer = layer(implementation, s, weights)(x, context, keep)
    assert_shape(answer, (s.B, s.T_q, s.d_out))
    return answer.output


@check(
    points=0.25,
    layer="shape",
    hint="T_q comes from x and T_k from the context: which of them has the answer?",
)
def test_shape(attempt, draw, sizes):
    """gives (B, T_q, d_out), for any two lengths and widths, with keep and without"""
    # nh divides 20, so an attempt that cuts the heads from d_query accepts it. An attempt that
    # needs d_out channels does not.
    widths = {"d_query": 20}, {}
    lengths = {"B": 1}, {"T_q": 1}, {"T_q": 17, "T_k": 9}, {"T_k": sizes.T_q}
    for change in (*widths, *lengths, {"d_query": 30, "d_context": 30}, {"nh": 1}):
        s = replace_sizes(sizes, **change)
        weights, (x, context, keep) = MODULE.weights_and_inputs(draw, s)
        for inputs in ((x, context), (x, context, keep), (x, context, None)):
            assert_shape(layer(attempt, s, weights)(*inputs), (s.B, s.T_q, s.d_out))


@check(
    points=0.25,
    layer="finite",
    hint="Is a whole row of scores hidden somewhere? And what is 0 · ∞?",
)
def test_finite(attempt, draw):
    """gives no NaN, however large the scores"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, inputs = MODULE.ascending_scores(draw, s)
        assert_finite(layer(attempt, s, weights)(*inputs))


@check(
    points=0.5,
    layer="causality",
    hint="A column of scores is a context token's. Which axes does keep need to reach the columns?",
)
def test_padding_unheard(attempt, draw):
    """gives the same whatever stands in the padding"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, (x, context, keep) = MODULE.weights_and_inputs(draw, s)
        edited = torch.where(keep[..., None], context, draw(s.B, s.T_k, s.d_context, scale=3.0))
        baseline = output(attempt, s, weights, x, context, keep)
        after = output(attempt, s, weights, x, edited, keep)
        assert_finite(baseline)
        evidence = Evidence("other padding (T_q = {}, T_k = {}) changes the output", s.T_q, s.T_k)
        assert_same(after, baseline, evidence)


@check(
    points=0.5,
    layer="causality",
    hint="Only tokens whose keep is False are hidden: the whole context is there from the start.",
)
def test_hears_all(attempt, draw):
    """lets every query see every real token of the context"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, (x, context, keep) = MODULE.weights_and_inputs(draw, s)
        for mask, how in ((keep, "with"), (None, "without")):
            real = torch.ones_like(keep) if mask is None else mask
            first_real = real.int().argmax(-1)
            last_real = s.T_k - 1 - real.flip(-1).int().argmax(-1)
            baseline = output(attempt, s, weights, x, context, mask)
            for index, ordinal in ((first_real, "first"), (last_real, "last")):
                edited = context.clone()
                edited[torch.arange(s.B), index] = draw(s.B, s.d_context)
                after = layer(attempt, s, weights)(x, edited, mask).output
                deaf = (relative_change(baseline, after) < 1e-9).any(0)
                queries = deaf.nonzero().flatten().tolist()[:8]
                evidence = Evidence(
                    "{} keep, the {} real context token is edited, and the outputs of queries {} "
                    "stay as they were",
                    how,
                    ordinal,
                    queries,
                )
                expect(not queries, evidence)


@check(points=0.25, layer="causality", hint="Does any step mix the first axis, or two queries?")
def test_independent(attempt, draw, sizes):
    """keeps sequences apart, and queries apart"""
    s = sizes
    weights, (x, context, keep) = MODULE.weights_and_inputs(draw, s)
    baseline = output(attempt, s, weights, x, context, keep)
    assert_finite(baseline)
    edited, other_context, other_keep = x.clone(), context.clone(), keep.clone()
    edited[-1], other_context[-1] = draw(s.T_q, s.d_query), draw(s.T_k, s.d_context)
    other_keep[-1] = ~keep[-1]
    after = layer(attempt, s, weights)(edited, other_context, other_keep).output
    evidence = "editing the last sequence of the batch changes the output of another"
    assert_same(after[:-1], baseline[:-1], evidence)
    edited = x.clone()
    edited[:, -1] = draw(s.B, s.d_query)
    after = layer(attempt, s, weights)(edited, context, keep).output
    evidence = "editing the last query changes the output of another"
    assert_same(after[:, :-1], baseline[:, :-1], evidence)


@check(
    points=0.25,
    layer="causality",
    hint="Which rows of W_query belong to head 0? Follow them into the output.",
)
def test_heads_apart(attempt, draw, sizes):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    s = sizes
    weights, inputs = MODULE.weights_and_inputs(draw, s)
    weights = MODULE.passing_on(weights)
    baseline = output(attempt, s, weights, *inputs)
    assert_finite(baseline)
    channels = [*range((s.nh - 1) * s.hd, s.d_out)]
    edited = {name: weight.clone() for name, weight in weights.items()}
    for rows, _ in MODULE.rows(edited, s):
        rows[channels] = draw.weights(s.hd, rows.shape[-1])
    after = layer(attempt, s, edited)(*inputs)
    changes = changed_positions(baseline, after, axes=2, tolerance=1e-5)
    evidence = Evidence(
        "rows {}…{} of W_query, W_key and W_value were edited, out_proj passes "
        "everything on, and channels {} moved: head {} owns those from {}",
        channels[0],
        channels[-1],
        changes[:8],
        s.nh - 1,
        channels[0],
    )
    expect(changes == channels, evidence)


@check(points=0.75, layer="values", hint="Take one head and one query, and do it by hand.")
def test_values(attempt, reference, draw, sizes):
    """attends to the whole context where there is no padding"""
    expect_right = partial(MODULE.assert_matches, attempt, reference)
    weights, (x, context, _) = MODULE.weights_and_inputs(draw, sizes, 1.5)
    expect_right(sizes, weights, (x, context))
    everyone = torch.ones(sizes.B, sizes.T_k, dtype=torch.bool)
    label = "with a keep that is True throughout, the output"
    expect_right(sizes, weights, (x, context, everyone), label)
    # As many tokens as channels of a head, or as heads: there these axes can be mixed up.
    for T, tied in ((6, {}), (5, {}), (10, {"nh": 3, "hd": 10})):
        s = SIZES(draw, T_q=T, T_k=T, **tied)
        weights, (x, context, _) = MODULE.weights_and_inputs(draw, s, 1.5)
        expect_right(
            s, weights, (x, context), Evidence("with {} tokens on both sides, the output", T)
        )


@check(
    points=0.75,
    layer="values",
    hint="A hidden score must be hidden before the softmax, so that the rest shares 1.",
)
def test_values_with_padding(attempt, reference, draw, sizes):
    """shares the whole unit among the real tokens"""
    large = LARGE(draw)
    for s, label in (
        (sizes, ""),
        (replace_sizes(sizes, B=1), "for a single sequence, the output"),
        (large, Evidence("with T_q = {} and T_k = {}, the output", large.T_q, large.T_k)),
    ):
        weights, inputs = MODULE.weights_and_inputs(draw, s, 1.5)
        MODULE.assert_matches(attempt, reference, s, weights, inputs, label)


@check(
    points=0.5,
    layer="values",
    hint="A hidden score must lose against every real one, however low. What is e to the power of"
    " it?",
)
def test_low_scores(attempt, reference, draw, sizes):
    """hides padding for good, where all scores are low"""
    weights, inputs = MODULE.low_scores(draw, sizes)
    label = "with low scores, the output"
    MODULE.assert_matches(attempt, reference, sizes, weights, inputs, label)


@check(
    points=0.25,
    layer="values",
    hint="Which of your tensors come from x, and which from the context?",
)
def test_square(attempt, reference, draw):
    """is right where both sides have one length and one width"""
    s = SQUARE(draw)
    MODULE.assert_matches(attempt, reference, s, *MODULE.weights_and_inputs(draw, s, 1.5))


@check(
    points=0.25,
    layer="gradients",
    hint="Is there a detach, a .data or a no_grad between input and output?",
)
def test_gradients(attempt, reference, draw, sizes):
    """lets gradients through to x, to the context and to every weight"""
    weights, inputs = MODULE.low_scores(draw, sizes)
    g = draw(sizes.B, sizes.T_q, sizes.d_out)
    # Without keep first. With keep, a finite number that is added to a whole column swallows its
    # scores, and no finite difference shows a slope.
    for args in (inputs[:2], inputs):
        shared.judge_gradients(MODULE, attempt, reference, sizes, weights, args, g)


CONTRACT = module_contract(
    MODULE,
    parameters=(
        "learns W_query, W_key, W_value and out_proj and nothing else",
        "No bias for the three layers that read, one for out_proj.",
    ),
    refuses_uneven_heads="",
    moves=("moves to another device as a whole", "Make new tensors on the device of x."),
    dtype_and_argument=(
        "follows the dtype of its input, and leaves its arguments as they were",
        "Name no dtype in forward, and compute new tensors instead of x.mul_.",
    ),
    again="",
    steady="",
    half_precision="",
)

# No query is one of the keys, so a gate on keys alone leaves a little interaction. The condition
# demands more than that.
PRECONDITIONS = {"CrossAttention": of_module(MODULE, least=1e-3)}
