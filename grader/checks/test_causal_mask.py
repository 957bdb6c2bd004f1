"""Hidden checks of the causal mask.

They ask which keys a query may look at, and which number is written where it may not look.
"""

import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Percent,
    assert_differs,
    assert_finite,
    assert_matches,
    assert_same,
    assert_shape,
    check,
    expect,
    function_contract,
)
from manyheads.checks.asserts import TOLERANCE, difference
from manyheads.checks.module_expectations import is_cut_in_part

from ._conditions import of_scores
from ._functions import expect_boolean_mask, expect_shapes, seen_in

# Scores reach down to −50. A finite fill must lie so far below that its weight is 0.
LOW_SCORE = -45.0
# hidden scores lie this far above the ones that are seen: subtracting 30 does not hide them
FAR = 45.0
LARGE = 40, 64  # more tokens than anybody tries by hand
SIZES = {"B": [5], "H": [3], "T": [9], "U": [11]}


def may_look(T):
    """Return whether each query may look at each key: (T, T)."""
    mask = []
    for query in range(T):
        mask.append([key <= query for key in range(T)])
    return torch.tensor(mask)


def weights_oracle(scores, mask):
    """Return the exponentials of visible scores over their sum: no −inf, no softmax."""
    exponentials = scores.exp() * mask
    return exponentials / exponentials.sum(-1, keepdim=True)


def after_softmax(scores):
    """Return the weights of masked scores: a finite minimum and −inf give the same."""
    return torch.softmax(scores.double(), dim=-1)


def random_mask(draw, *shape):
    """Return a mask that hides a key from every query, and shows it at least one."""
    order = draw(*shape).argsort(-1).argsort(-1)
    return (order < 1) | ((order < shape[-1] - 1) & (draw(*shape) > 0))


def arguments(draw):
    """Return arguments of the functions of scores by name."""
    s = draw.sizes(**SIZES)
    scores, mask = draw(s.B, s.T, s.U), random_mask(draw, s.T, s.U)
    return {
        "mask_scores": {"scores": scores, "mask": mask},
        "causal_weights": {"scores": draw(s.B, s.T, s.T)},
    }


def all_arguments(draw):
    """Return arguments of all functions by name."""
    s = draw.sizes(**SIZES)
    return with_mask(draw, s, random_mask(draw, s.T, s.U))


def unmasked_arguments(draw):
    """Return the same with as many keys as queries, and a mask that hides nothing."""
    s = draw.sizes(**SIZES)
    return with_mask(draw, s, torch.ones(s.T, s.T, dtype=torch.bool))


def with_mask(draw, s, mask):
    return {
        "causal_mask": {"T": s.T},
        "mask_scores": {"scores": draw(s.B, *mask.shape), "mask": mask},
        "causal_weights": {"scores": draw(s.B, s.T, s.T)},
    }


@check(points=0.25, layer="shape")
def test_shapes(attempt, reference, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    expect_shapes(attempt, reference, all_arguments(draw))


@check(
    points=0.25,
    layer="hygiene",
    hint="What is the dtype of a comparison, or of torch.ones without dtype=?",
)
def test_mask_is_boolean(attempt, draw):
    """makes a boolean mask"""
    T = all_arguments(draw)["causal_mask"]["T"]
    expect_boolean_mask("causal_mask", attempt.causal_mask(T))


@check(
    points=0.5, layer="values", hint="Rows look, columns are looked at, and True means: may look."
)
def test_causal_mask(attempt, draw, sizes):
    """lets every token see itself and the past, and nothing else"""
    lengths = (sizes.T, sizes.U, 1, draw.integer(*LARGE))
    masks = [attempt.causal_mask(T).output for T in lengths]
    for T, mask in zip(lengths, masks, strict=True):
        assert_shape(mask, (T, T), Evidence("causal_mask({})", T))
        actual, expected = seen_in(mask, masks[0]), may_look(T)
        if torch.equal(actual, expected):
            continue
        is_swapped = T > 1 and torch.equal(actual, expected.mT)
        is_inverted = torch.equal(actual, ~expected)
        row, column = (actual != expected).nonzero()[0].tolist()
        label = Evidence("for T = {}, row {}, column {}", T, row, column)
        expect(not is_swapped, "past and future are swapped: rows look")
        expect(not is_inverted, "True and False are swapped: True means may look")
        expect(actual.diagonal().all(), Evidence("for T = {}, a token may not see itself", T))
        expect(actual[expected].all(), Evidence("{}: a token of the past is hidden", label))
        raise CheckFailed(Evidence("{}: a token of the future may be seen", label))


@check(
    points=0.25,
    layer="finite",
    hint="Is there a row that sees no key, or a zero that meets an infinity?",
)
def test_finite(attempt, draw, sizes):
    """gives weights without NaN"""
    scores = draw(sizes.B, sizes.T, sizes.T)
    assert_finite(attempt.causal_weights(scores), "the weights")


@check(
    points=0.25, layer="values", hint="What is hidden must be gone before the softmax shares out."
)
def test_rows_sum_to_one(attempt, draw, sizes):
    """shares out exactly one unit for each query"""
    for T in (sizes.T, 1):
        weights = attempt.causal_weights(draw(sizes.B, T, T)).output
        assert_shape(weights, (sizes.B, T, T), "the weights")
        is_one = ((weights.sum(-1) - 1).abs() <= TOLERANCE).all(0)
        bad = (~is_one).nonzero().flatten().tolist()
        first_bad = bad[0] if bad else 0
        expect(
            not bad,
            Evidence(
                "with T = {}, {} of {} rows do not sum to 1, row {} first",
                T,
                len(bad),
                T,
                first_bad,
            ),
        )


@check(points=0.25, layer="causality", hint="Change a hidden score: may any weight move?")
def test_causality(attempt, draw, sizes):
    """gives no weight to the future, and does not depend on it"""
    shape = (sizes.B, sizes.T, sizes.T)
    scores, hidden = draw(*shape) + LOW_SCORE, ~may_look(sizes.T)
    weights = attempt.causal_weights(scores)
    edited = attempt.causal_weights(scores + hidden * (FAR + draw(*shape, scale=3.0)))
    assert_shape(weights, shape, "the weights")
    ahead = (weights.abs() * hidden).amax(0)
    query, key = divmod(int(ahead.argmax()), sizes.T)
    evidence = Evidence("query {} gives a weight to key {}, which lies in its future", query, key)
    expect(ahead.max() <= TOLERANCE, evidence)
    assert_same(weights, edited, "scores above the diagonal were edited, and weights moved")


@check(
    points=0.5, layer="values", hint="Which number does e to its power turn into exactly nothing?"
)
def test_mask_scores(attempt, draw, sizes):
    """writes −inf where the mask is False and keeps the rest"""
    ordinary, large = (sizes.T, sizes.U), (draw.integer(*LARGE), draw.integer(*LARGE))
    for shape, among, offset, lift in (
        (ordinary, "ordinary scores", 0.0, 0.0),
        (ordinary, "low scores", LOW_SCORE, 0.0),
        (ordinary, "scores far below its own", LOW_SCORE, FAR),
        (large, "ordinary scores", 0.0, 0.0),
    ):
        mask = random_mask(draw, *shape)
        scores = draw(sizes.B, *shape) + offset + lift * ~mask
        masked = attempt.mask_scores(scores, mask).output
        assert_shape(masked, scores.shape, "the masked scores")
        count = int(masked.isnan().sum())
        expect(not count, Evidence("{} of {} masked scores are NaN", count, masked.numel()))
        distance = difference(masked.masked_fill(mask, 0), scores.masked_fill(mask, 0))
        is_inverted = distance <= TOLERANCE and not mask.all()
        expect(not is_inverted, "scores whose mask is False are still there")
        visible = masked.masked_fill(~mask, 0)
        assert_matches(visible, scores.masked_fill(~mask, 0), "what the mask lets through")
        weights = after_softmax(masked)
        share = float((weights * ~mask).nan_to_num(1.0).max())
        expect(
            share <= TOLERANCE,
            Evidence("a hidden key still gets a share of {} among {}", Percent(share), among),
        )
        assert_matches(weights, weights_oracle(scores, mask), "the softmax of the masked scores")


@check(points=0.25, layer="causality", hint="Let broadcasting do it, and count axes from the end.")
def test_leading_dimensions(attempt, draw, sizes):
    """serves any leading dimensions, and masks that are broadcast over them"""
    B, H, T, U = vars(sizes).values()
    scores, mask, keys = draw(B, H, T, U), random_mask(draw, B, 1, T, U), random_mask(draw, U)
    square = draw(B, H, T, T)
    last_scores, last_mask = scores[-1, -1].clone(), mask[-1, 0].clone()
    for name, args, alone in (
        ("mask_scores", (scores, mask), (last_scores, last_mask)),
        ("mask_scores", (scores, keys), (last_scores, keys.expand(T, -1).clone())),
        ("causal_weights", (square,), (square[-1, -1].clone(),)),
    ):
        batched = attempt.call(name, *args)
        assert_shape(batched, args[0].shape, Evidence("the output of {}", name))
        evidence = Evidence(
            "{}: what stands last of the leading dimensions gives something else when it "
            "stands alone",
            name,
        )
        assert_same(batched[-1, -1], attempt.call(name, *alone), evidence)


@check(points=0.5, layer="values", hint="First hide, then share out.")
def test_causal_weights(attempt, draw, sizes):
    """shares out attention over itself and the past"""
    B, _, T, _ = vars(sizes).values()
    scores, low, long = draw(B, T, T), draw(B, T, T) + LOW_SCORE, draw.integer(*LARGE)
    for label, case in (
        ("the weights", scores),
        ("the weights of low scores", low),
        ("the weights of scores of which some are 0", scores * (torch.arange(T) % 3 > 0)),
        ("the weights", draw(B, long, long)),
    ):
        weights = attempt.causal_weights(case)
        assert_differs(weights, after_softmax(case), "the weights are those without any mask")
        assert_matches(weights, weights_oracle(case, may_look(len(case[0]))), label)
    calls = attempt.sequence("causal_weights")
    short, longer = draw(B, T - 5, T - 5), draw(B, T, T)
    calls(short)
    calls(longer)
    for scores, answer in zip((short, longer), calls.ask(), strict=True):
        length = len(scores[0])
        label = Evidence(
            "asked for {} tokens and then for {}, the weights for {}", T - 5, T, length
        )
        assert_matches(answer, weights_oracle(scores, may_look(length)), label)


@check(points=0.25, layer="gradients")
def test_gradients(attempt, reference, draw, sizes):
    """lets the right gradients through to the scores"""
    B, _, T, U = vars(sizes).values()
    mask = random_mask(draw, T, U)
    g, scores = draw(B, T, U) * mask, draw(B, T, U)
    expect_gradient(attempt, reference, "mask_scores", g, mask, scores, mask)
    g, scores = draw(B, T, T), draw(B, T, T) + LOW_SCORE
    expect_gradient(attempt, reference, "causal_weights", g, may_look(T), scores)


def expect_gradient(attempt, reference, name, cotangent, visible, *args):
    """Fail unless the gradient of the scores arrives, and is right where a query may look."""
    got, want = (
        c.with_options(cotangent=cotangent).call(name, *args) for c in (attempt, reference)
    )
    assert_shape(got, cotangent.shape, Evidence("the output of {}", name))
    gradient, (scores, *mask) = got.gradient("args.0"), args
    if gradient is None:
        weights = after_softmax(got)
        moved = after_softmax(attempt.call(name, scores.roll(1, -1) + 1, *mask))
        is_cut = weights.isfinite().all() and difference(moved, weights) > TOLERANCE
        depends = ", though the output depends on them" if is_cut else ""
        suspect = "gradient_cut" if is_cut else ""
        raise CheckFailed(Evidence("{}: no gradient reaches the scores{}", name, depends), suspect)
    assert_shape(gradient, scores.shape, Evidence("the gradient of {}", name))
    actual, expected = (g.masked_fill(~visible, 0) for g in (gradient, want.gradient("args.0")))
    try:
        assert_matches(actual, expected, Evidence("{}: the gradient of the scores", name))
    except CheckFailed as failed:
        is_cut = is_cut_in_part(attempt, got, want, cotangent)
        raise CheckFailed(failed.evidence, "gradient_cut" if is_cut else "") from None


CONTRACT = [
    *function_contract(arguments, points=0.25, leaves_its_arguments="", dtype=""),
    *function_contract(
        unmasked_arguments,
        points=0.25,
        device=(
            "makes the mask on the device that is asked for",
            "The mask belongs where the scores are.",
        ),
    ),
]

PRECONDITIONS = {"causal_weights": of_scores("causal_weights")}
