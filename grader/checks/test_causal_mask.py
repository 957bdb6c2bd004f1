"""Hidden checks of the causal mask.

They ask which keys a query may look at, and which number is written where it may not look.
"""

from functools import partial

import torch

from manyheads.checks import (
    CheckFailed,
    assert_finite,
    assert_matches,
    assert_same,
    assert_shape,
    expect,
)
from manyheads.checks.asserts import TOLERANCE, difference

from ._conditions import of_scores
from ._functions import (
    device,
    dtype,
    is_cut_in_part,
    leaves_its_arguments,
    mask_is_boolean,
    restricted,
    seen_in,
    shapes,
)
from ._modules import Layers, Sizes, asked_of

# Scores reach down to −50. A finite fill must lie so far below that its weight is 0.
DEEP = -45.0
# hidden scores lie this far above the ones that are seen: subtracting 30 does not hide them
FAR = 45.0
LARGE = 40, 64  # more tokens than anybody tries by hand
SIZES = Sizes(B=[5], H=[3], T=[9], U=[11])
layer = Layers(SIZES)


def calls_of(draw, mask=None):
    """Return the functions of scores, with arguments for them by name.

    Args:
        mask: the mask of mask_scores, by default a random one.
    """
    s = SIZES(draw)
    scores = draw(s.B, s.T, s.U if mask is None else mask.shape[1])
    mask = random_mask(draw, s.T, s.U) if mask is None else mask
    return {
        "mask_scores": {"scores": scores, "mask": mask},
        "causal_weights": {"scores": draw(s.B, s.T, s.T)},
    }


def all_of(draw, square=False):
    """Return all functions, with arguments for them by name.

    Args:
        square: whether there are as many keys as queries, and nothing is hidden.
    """
    s = SIZES(draw)
    mask = torch.ones(s.T, s.T, dtype=torch.bool) if square else random_mask(draw, s.T, s.U)
    return {"causal_mask": {"T": s.T}, **calls_of(draw, mask)}


masks_of, on_device = restricted(all_of, "causal_mask"), partial(all_of, square=True)


def may_look(rows, columns):
    """Return the oracle's mask: whether each query may look at each key."""
    mask = []
    for query in range(rows):
        mask.append([key <= query for key in range(columns)])
    return torch.tensor(mask)


def random_mask(draw, *shape):
    """Return a mask that hides a key from every query, and shows it at least one."""
    order = draw(*shape).argsort(-1).argsort(-1)
    return (order < 1) | ((order < shape[-1] - 1) & (draw(*shape) > 0))


def after_softmax(scores):
    """Return the weights of masked scores: a finite minimum and −inf give the same."""
    return torch.softmax(scores.double(), dim=-1)


def assert_gradient(attempt, reference, name, cotangent, visible, scores, *extra_args):
    """Fail unless the gradient of the scores arrives, and is right where a query may look."""
    got, want = (
        c.asking(cotangent=cotangent).call(name, scores, *extra_args) for c in (attempt, reference)
    )
    assert_shape(got, cotangent.shape, f"the output of {name}")
    gradient = got.gradient("args.0")
    if gradient is None:
        moved = after_softmax(attempt.call(name, scores.roll(1, -1) + 1, *extra_args).output)
        baseline = after_softmax(got.output)
        cut = bool(baseline.isfinite().all()) and difference(moved, baseline) > TOLERANCE
        evidence = (
            f"{name}: no gradient reaches the scores" + ", though the output depends on them" * cut
        )
        raise CheckFailed(evidence, "gradient_cut" if cut else "")
    assert_shape(gradient, scores.shape, f"the gradient of {name}")
    zero = torch.zeros(())
    expected = torch.where(visible, want.gradient("args.0"), zero)
    try:
        assert_matches(
            torch.where(visible, gradient, zero), expected, f"{name}: the gradient of the scores"
        )
    except CheckFailed as fault:
        raise CheckFailed(
            str(fault), "gradient_cut" if is_cut_in_part(attempt, got, want, cotangent) else ""
        ) from None


test_shapes = asked_of(all_of, shapes)
test_mask_is_boolean = asked_of(masks_of, mask_is_boolean)


@layer.values(0.5, "Rows look, columns are looked at, and True means: may look.")
def test_causal_mask(attempt, draw, s):
    """lets every token see itself and the past, and nothing else"""
    sizes = (s.T, s.U, 1, draw.integer(*LARGE))
    masks = [attempt.call("causal_mask", size).output for size in sizes]
    for size, mask in zip(sizes, masks, strict=True):
        assert_shape(mask, (size, size), f"causal_mask({size})")
        actual, expected = seen_in(mask, masks[0]), may_look(size, size)
        sees_itself, past = bool(actual.diagonal().all()), bool(actual[expected].all())
        at = [
            f"for T = {size}, row {i}, column {j}"
            for i, j in (actual != expected).nonzero().tolist()
        ]
        expect(
            not at or size == 1 or not torch.equal(actual, expected.mT),
            "past and future are swapped: rows look",
        )
        expect(
            not at or not torch.equal(actual, ~expected),
            "True and False are swapped: True means may look",
        )
        expect(sees_itself, f"for T = {size}, a token may not see itself")
        expect(past, f"{at[0] if at else ''}: a token of the past is hidden")
        expect(not at, f"{at[0] if at else ''}: a token of the future may be seen")


@layer.finite(0.25, "Is there a row that sees no key, or a zero that meets an infinity?")
def test_finite(attempt, draw, s):
    """gives weights without NaN"""
    assert_finite(attempt.call("causal_weights", draw(s.B, s.T, s.T)), "the weights")


@layer.values(0.25, "What is hidden must be gone before the softmax shares out.")
def test_rows_sum_to_one(attempt, draw, s):
    """shares out exactly one unit for each query"""
    for size in (s.T, 1):
        weights = attempt.call("causal_weights", draw(s.B, size, size)).output
        assert_shape(weights, (s.B, size, size), "the weights")
        off = (weights.sum(-1) - 1).abs().amax(0)
        bad = [i for i, worst in enumerate(off.tolist()) if not worst <= TOLERANCE]
        expect(
            not bad,
            f"with T = {size}, {len(bad)} of {size} rows do not sum to 1, row"
            f" {bad[0] if bad else 0} first",
        )


@layer.causality(0.25, "Change a hidden score: may any weight move?")
def test_causality(attempt, draw, s):
    """gives no weight to the future, and does not depend on it"""
    scores, hidden = draw(s.B, s.T, s.T) + DEEP, ~may_look(s.T, s.T)
    weights = attempt.call("causal_weights", scores)
    edited = attempt.call(
        "causal_weights", scores + hidden * (FAR + draw(s.B, s.T, s.T, scale=3.0))
    )
    assert_shape(weights, scores.shape, "the weights")
    ahead = (weights.output.abs() * hidden).amax(0)
    i, j = divmod(int(ahead.argmax()), s.T)
    expect(
        float(ahead.max()) <= TOLERANCE,
        f"query {i} gives a weight to key {j}, which lies in its future",
    )
    assert_same(weights, edited, "scores above the diagonal were edited, and weights moved")


@layer.values(0.5, "Which number does e to its power turn into exactly nothing?")
def test_mask_scores(attempt, reference, draw, s):
    """writes −inf where the mask is False and keeps the rest"""
    ordinary, large = (s.T, s.U), (draw.integer(*LARGE), draw.integer(*LARGE))
    for offset, lift, sizes in (
        (0.0, 0.0, ordinary),
        (DEEP, 0.0, ordinary),
        (DEEP, FAR, ordinary),
        (0.0, 0.0, large),
    ):
        mask = random_mask(draw, *sizes)
        scores = draw(s.B, *sizes) + offset + lift * ~mask
        got = attempt.call("mask_scores", scores, mask).output
        assert_shape(got, scores.shape, "the masked scores")
        expect(
            not got.isnan().any(),
            f"{int(got.isnan().sum())} of {got.numel()} masked scores are NaN",
        )
        visible, hidden = torch.where(mask, got, 0.0), after_softmax(got) * ~mask
        inverted = (
            difference(torch.where(mask, 0.0, got), torch.where(mask, 0.0, scores)) <= TOLERANCE
        )
        expect(not inverted or mask.all(), "scores whose mask is False are still there")
        assert_matches(visible, torch.where(mask, scores, 0.0), "what the mask lets through")
        enough = bool((hidden <= TOLERANCE).all())
        among = "ordinary scores"
        if offset:
            among = "scores far below its own" if lift else "low scores"
        expect(
            enough,
            f"a hidden key still gets a share of {float(hidden.nan_to_num(1.0).max()):.0%} among"
            f" {among}",
        )
        want = reference.call("mask_scores", scores, mask).output
        assert_matches(after_softmax(got), after_softmax(want), "the softmax of the masked scores")


@layer.causality(0.25, "Let broadcasting do it, and count axes from the end.")
def test_leading_dimensions(attempt, draw, s):
    """serves any leading dimensions, and masks that are broadcast over them"""
    scores, mask, keys = (
        draw(s.B, s.H, s.T, s.U),
        random_mask(draw, s.B, 1, s.T, s.U),
        random_mask(draw, s.U),
    )
    calls = (
        ("mask_scores", (scores, mask), (scores[-1, -1].clone(), mask[-1, 0].clone())),
        ("mask_scores", (scores, keys), (scores[-1, -1].clone(), keys.expand(s.T, -1).clone())),
    )
    square = draw(s.B, s.H, s.T, s.T)
    for name, args, alone in (*calls, ("causal_weights", (square,), (square[-1, -1].clone(),))):
        batched = attempt.call(name, *args)
        assert_shape(batched, args[0].shape, f"the output of {name}")
        evidence = (
            f"{name}: what stands last of the leading dimensions gives something else when it"
            " stands alone"
        )
        assert_same(batched.output[-1, -1], attempt.call(name, *alone), evidence)


@layer.values(0.5, "First hide, then share out.")
def test_causal_weights(attempt, reference, agree, draw, s):
    """shares out attention over itself and the past"""
    ordinary, low, large = (
        draw(s.B, s.T, s.T),
        draw(s.B, s.T, s.T) + DEEP,
        draw(s.B, *2 * (draw.integer(*LARGE),)),
    )
    with_zeros = ordinary * (torch.arange(s.T) % 3 > 0)
    suffixes = ("", " of low scores", " of scores of which some are 0", "")
    for scores, suffix in zip((ordinary, low, with_zeros, large), suffixes, strict=True):
        guesses = {"the weights are those without any mask": after_softmax(scores)}
        agree("causal_weights", {f"the weights{suffix}": (scores,)}, guesses)
    calls = attempt.sequence("causal_weights")
    short, longer = draw(s.B, s.T - 5, s.T - 5), draw(s.B, s.T, s.T)
    calls(short)
    calls(longer)
    for scores, answer in zip((short, longer), calls.ask(), strict=True):
        label = f"asked for {s.T - 5} tokens and then for {s.T}, the weights for {len(scores[0])}"
        assert_matches(answer, reference.call("causal_weights", scores), label)


@layer.gradients(0.25)
def test_gradients(attempt, reference, draw, s):
    """lets the right gradients through to the scores"""
    mask = random_mask(draw, s.T, s.U)
    assert_gradient(
        attempt,
        reference,
        "mask_scores",
        draw(s.B, s.T, s.U) * mask,
        mask,
        draw(s.B, s.T, s.U),
        mask,
    )
    g, visible = draw(s.B, s.T, s.T), may_look(s.T, s.T)
    assert_gradient(attempt, reference, "causal_weights", g, visible, draw(s.B, s.T, s.T) + DEEP)


test_leaves_its_arguments = asked_of(calls_of, leaves_its_arguments)
test_dtype = asked_of(calls_of, dtype)
test_device = asked_of(
    on_device,
    device,
    "makes the mask on the device that is asked for",
    "The mask belongs where the scores are.",
)

PRECONDITIONS = {"causal_weights": of_scores("causal_weights")}
