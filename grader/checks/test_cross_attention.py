"""Hidden checks of cross-attention with a padding mask."""

from functools import partial

import torch

from manyheads.checks import assert_finite, assert_same, assert_shape, expect, moved
from manyheads.checks.module_expectations import HINT, judge_again

from . import _modules
from ._conditions import of_module
from ._modules import Layers, Sizes, asked_of, changed, joined

SIZES = Sizes(
    B=[7], T_q=[9, 11], T_k=[13, 17], nh=[5], hd=[6], d_query=[14], d_context=[19], d_out=joined
)
# As many queries as keys, and one width, so that sides and axes can be mixed up and still fit.
SQUARE = partial(SIZES, T_k=11, T_q=11, d_query=30, d_context=30)
# A context that is shorter than x.
LARGE = Sizes(
    B=[2], T_q=(50, 60), T_k=(30, 40), nh=[9], hd=[7], d_query=[20], d_context=[17], d_out=joined
)


class Cross(_modules.Subject):
    """The module of this exercise."""

    name = "CrossAttention"
    arguments = (
        *((width, width) for width in ("d_query", "d_context", "d_out")),
        ("num_heads", "nh"),
    )
    projections = tuple((f"W_{name}.weight", 1, "nh") for name in ("query", "key", "value"))
    sizes = SIZES

    def __init__(self, masked=True):
        self.masked = masked

    def shapes(self, s, **options):
        read = {"query": s.d_query, "key": s.d_context, "value": s.d_context}
        shapes = {f"W_{name}.weight": (s.d_out, width) for name, width in read.items()}
        return {**shapes, "out_proj.weight": (s.d_out, s.d_out), "out_proj.bias": (s.d_out,)}

    def weights_and_inputs(self, draw, s, scale=1.0, **options):
        """Return weights, and the inputs x, context and keep; an unmasked module has no keep."""
        x, context = (
            draw(s.B, s.T_q, s.d_query, scale=scale),
            draw(s.B, s.T_k, s.d_context, scale=scale),
        )
        weights, keep, batch_index = (
            self.weights(draw, s),
            draw(s.B, s.T_k) > -0.3,
            torch.arange(s.B),
        )
        # In every sequence some tokens are real and some are padding, at any position.
        keep[batch_index, batch_index % s.T_k], keep[batch_index, (batch_index + 3) % s.T_k] = (
            True,
            False,
        )
        if s.B > 1:  # one token is padding in every sequence, others only in some
            keep[:, -2], keep[:, -1] = False, True
            keep[1::2, 0] = False  # and padding may come first
        return weights, (x, context, keep)[: 3 if self.masked else 2]


CROSS, UNMASKED = Cross(), Cross(masked=False)
layer = Layers(CROSS)


@layer.shape(0.25, "T_q comes from x and T_k from the context: which of them has the answer?")
def test_shape(attempt, draw, s):
    """gives (B, T_q, d_out), for any two lengths and widths, with keep and without"""
    # nh divides 20, so an attempt that cuts the heads from d_query accepts it. An attempt that
    # needs d_out channels does not.
    widths, lengths = (
        ({"d_query": 20}, {}),
        ({"B": 1}, {"T_q": 1}, {"T_q": 17, "T_k": 9}, {"T_k": s.T_q}),
    )
    for change in (*widths, *lengths, {"d_query": 30, "d_context": 30}, {"nh": 1}):
        sizes = changed(s, **change)
        weights, (x, context, keep) = CROSS.weights_and_inputs(draw, sizes)
        for inputs in ((x, context), (x, context, keep), (x, context, None)):
            assert_shape(
                CROSS.module(attempt, sizes, weights)(*inputs), (sizes.B, sizes.T_q, s.d_out)
            )


@layer.finite(0.25, "Is a whole row of scores hidden somewhere? And what is 0 · ∞?")
def test_finite(attempt, draw):
    """gives no NaN, however large the scores"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, inputs = CROSS.ascending_scores(draw, s)
        assert_finite(CROSS.module(attempt, s, weights)(*inputs))


@layer.causality(
    0.5, "A column of scores is a context token's. Which axes does keep need to reach the columns?"
)
def test_padding_unheard(attempt, draw):
    """gives the same whatever stands in the padding"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, (x, context, keep) = CROSS.weights_and_inputs(draw, s)
        edited = torch.where(keep[..., None], context, draw(s.B, s.T_k, s.d_context, scale=3.0))
        baseline, after = (
            CROSS.answered(attempt, s, weights, x, tokens, keep) for tokens in (context, edited)
        )
        assert_finite(baseline)
        assert_same(
            after, baseline, f"other padding (T_q = {s.T_q}, T_k = {s.T_k}) changes the output"
        )


@layer.causality(
    0.5, "Only tokens whose keep is False are hidden: the whole context is there from the start."
)
def test_hears_all(attempt, draw):
    """lets every query see every real token of the context"""
    for s in (SIZES(draw), SQUARE(draw)):
        weights, (x, context, keep) = CROSS.weights_and_inputs(draw, s)
        for mask in (keep, None):
            real = torch.ones_like(keep) if mask is None else mask
            last_real = s.T_k - 1 - real.flip(-1).int().argmax(-1)
            first_real = real.int().argmax(-1)
            baseline = CROSS.answered(attempt, s, weights, x, context, mask)
            for index, ordinal in ((first_real, "first"), (last_real, "last")):
                edited = context.clone()
                edited[torch.arange(s.B), index] = draw(s.B, s.d_context)
                deaf = (
                    moved(baseline, CROSS.module(attempt, s, weights)(x, edited, mask).output)
                    < 1e-9
                )
                queries, how = (
                    deaf.any(0).nonzero().flatten().tolist()[:8],
                    "without" if mask is None else "with",
                )
                evidence = (
                    f"{how} keep, the {ordinal} real context token is edited, and the outputs of"
                    f" queries {queries}"
                )
                expect(not queries, f"{evidence} stay as they were")


@layer.causality(0.25, "Does any step mix the first axis, or two queries?")
def test_independent(attempt, draw, s):
    """keeps sequences apart, and queries apart"""
    weights, (x, context, keep) = CROSS.weights_and_inputs(draw, s)
    baseline = CROSS.answered(attempt, s, weights, x, context, keep)
    assert_finite(baseline)
    other_x, other_context, other_keep = x.clone(), context.clone(), keep.clone()
    other_x[-1], other_context[-1], other_keep[-1] = (
        draw(s.T_q, s.d_query),
        draw(s.T_k, s.d_context),
        ~keep[-1],
    )
    after = CROSS.module(attempt, s, weights)(other_x, other_context, other_keep).output
    assert_same(
        after[:-1],
        baseline[:-1],
        "editing the last sequence of the batch changes the output of another",
    )
    other_x = x.clone()
    other_x[:, -1] = draw(s.B, s.d_query)
    after = CROSS.module(attempt, s, weights)(other_x, context, keep).output
    assert_same(
        after[:, :-1], baseline[:, :-1], "editing the last query changes the output of another"
    )


@layer.causality(0.25, "Which rows of W_query belong to head 0? Follow them into the output.")
def test_heads_apart(attempt, draw, s, weights, inputs):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    weights = CROSS.passing_on(weights)
    baseline = CROSS.answered(attempt, s, weights, *inputs)
    assert_finite(baseline)
    channels = [*range((s.nh - 1) * s.hd, s.d_out)]
    edited = {name: weight.clone() for name, weight in weights.items()}
    for rows, _ in CROSS.rows(edited, s):
        rows[channels] = draw.weights(s.hd, rows.shape[-1])
    after = CROSS.module(attempt, s, edited)(*inputs).output
    moves = (
        ((baseline - after).abs().amax((0, 1)) > 1e-5 * baseline.abs().max())
        .nonzero()
        .flatten()
        .tolist()
    )
    evidence = (
        f"rows {channels[0]}…{channels[-1]} of W_query, W_key and W_value were edited, out_proj"
        " passes everything on, and "
    )
    expect(
        moves == channels,
        evidence + f"channels {moves[:8]} moved: head {s.nh - 1} owns those from {channels[0]}",
    )


@layer.values(0.75, "Take one head and one query, and do it by hand.")
def test_values(agree, draw, s):
    """attends to the whole context where there is no padding"""
    weights, (x, context, _) = CROSS.weights_and_inputs(draw, s, 1.5)
    agree(s, weights, (x, context))
    everyone = torch.ones(s.B, s.T_k, dtype=torch.bool)
    agree(s, weights, (x, context, everyone), "with a keep that is True throughout, the output")
    # As many tokens as channels of a head, or as heads: there these axes can be mixed up.
    for tied in (
        SIZES(draw, T_q=6, T_k=6),
        SIZES(draw, T_q=5, T_k=5),
        SIZES(draw, T_q=10, T_k=10, nh=3, hd=10),
    ):
        T = tied.T_q
        weights, (x, context, _) = CROSS.weights_and_inputs(draw, tied, 1.5)
        agree(tied, weights, (x, context), f"with {T} tokens on both sides, the output")


@layer.values(0.75, "A hidden score must be hidden before the softmax, so that the rest shares 1.")
def test_values_with_padding(agree, draw, s):
    """shares the whole unit among the real tokens"""
    agree(s, *CROSS.weights_and_inputs(draw, s, 1.5))
    alone = changed(s, B=1)
    agree(alone, *CROSS.weights_and_inputs(draw, alone, 1.5), "for a single sequence, the output")
    s = LARGE(draw)
    agree(
        s,
        *CROSS.weights_and_inputs(draw, s, 1.5),
        f"with T_q = {s.T_q} and T_k = {s.T_k}, the output",
    )


@layer.values(
    0.5,
    "A hidden score must lose against every real one, however low. What is e to the power of it?",
)
def test_low_scores(agree, draw, s):
    """hides padding for good, where all scores are low"""
    agree(s, *CROSS.low_scores(draw, s), "with low scores, the output")


@layer.values(0.25, "Which of your tensors come from x, and which from the context?")
def test_square(agree, draw):
    """is right where both sides have one length and one width"""
    s = SQUARE(draw)
    agree(s, *CROSS.weights_and_inputs(draw, s, 1.5))


@layer.gradients(0.25, "Is there a detach, a .data or a no_grad between input and output?")
def test_gradients(attempt, reference, draw, s):
    """lets gradients through to x, to the context and to every weight"""
    (weights, inputs), g = CROSS.low_scores(draw, s), draw(s.B, s.T_q, s.d_out)
    # Without keep first. With keep, a finite number that is added to a whole column swallows its
    # scores, and no finite difference shows a slope.
    for args in (inputs[:2], inputs):
        _modules.judge_gradients(CROSS, attempt, reference, s, weights, args, g)


test_parameters = asked_of(
    CROSS,
    _modules.parameters,
    "learns W_query, W_key, W_value and out_proj and nothing else",
    "No bias for the three layers that read, one for out_proj.",
)
test_refuses_uneven_heads = asked_of(CROSS, _modules.refuses_uneven_heads)
test_moves = asked_of(
    CROSS,
    _modules.moves,
    "moves to another device as a whole",
    "Make new tensors on the device of x.",
)
test_dtype_and_argument = asked_of(
    CROSS,
    _modules.dtype_and_argument,
    "follows the dtype of its input, and leaves its arguments as they were",
)


@layer.hygiene(0.25, HINT)
def test_again(attempt, draw, s):
    """answers every call as a fresh instance would, with keep and without"""
    weights, with_keep = CROSS.weights_and_inputs(draw, s)
    _, (*without, _) = CROSS.weights_and_inputs(draw, s)
    _, resized = CROSS.weights_and_inputs(draw, changed(s, B=3, T_q=13, T_k=9))
    judge_again(CROSS.module(attempt, s, weights), with_keep, without, resized)


test_steady = asked_of(CROSS, _modules.steady)
test_half_precision = asked_of(CROSS, _modules.half_precision)

# No query is one of the keys, so a gate on keys alone leaves a little interaction. The condition
# demands more than that.
PRECONDITIONS = {"CrossAttention": of_module(UNMASKED, least=1e-3)}
