"""Hidden checks of rotary positions.

Pairs of channels are turned, scores depend on differences of positions alone, and weights are
reordered for the other layout.
"""

import torch

from manyheads.checks import Condition, assert_matches, assert_same, assert_shape, expect

from . import _functions as shared
from ._functions import same
from ._modules import Layers, Sizes, asked_of

LAST = 63  # positions are integers from 0 to here
BASE = 10000.0


SIZES = Sizes(B=[5], H=[3], T=[11, 12], U=[9], hd=[10, 14], nh=[6], C_in=[7])
layer = Layers(SIZES)


def drawn_positions(draw, count):
    """Return different positions in random order, which do not simply count up."""
    return draw(LAST + 1).argsort()[:count].clone()


def calls_of(draw, s=None):
    s = s or SIZES(draw)
    return {
        "rotate": {"x": draw(s.B, s.T, s.hd), "positions": drawn_positions(draw, s.T)},
        "rotary_scores": {
            "q": draw(s.B, s.U, s.hd),
            "k": draw(s.B, s.T, s.hd),
            "q_positions": drawn_positions(draw, s.U),
            "k_positions": drawn_positions(draw, s.T),
        },
        "pairs_to_halves": {"weight": draw(s.nh * s.hd, s.C_in), "n_head": s.nh},
    }


def turned_in_halves(x, positions):
    """Return x turned in the layout that pairs channel i with channel i + hd/2."""
    (a, b), hd = x.chunk(2, dim=-1), x.shape[-1]
    # (T, hd / 2)
    angle = positions[:, None] * BASE ** -(torch.arange(0, hd, 2, dtype=torch.float64) / hd)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


turned_of = shared.restricted(calls_of, "rotate", "rotary_scores")
test_shapes = asked_of(calls_of, shared.shapes)


@layer.values(0.75, "Which channels are a pair, which way do they turn, and how fast is pair i?")
def test_rotate(reference, agree, draw, s):
    """turns neighbouring channels, each pair at its own speed"""
    x, positions = draw(s.B, s.T, s.hd), torch.arange(s.T)
    want, back = (reference.call("rotate", x, signed).output for signed in (positions, -positions))
    guesses = {
        "nothing is turned": x,
        "the pairs turn the wrong way round": back,
        "channel i is paired with channel i + hd/2: here neighbours are a pair": turned_in_halves(
            x, positions
        ),
        "pairs are turned, and then put back as two halves": torch.cat(
            [want[..., 0::2], want[..., 1::2]], -1
        ),
    }
    agree("rotate", {"": (x, positions)}, guesses)
    length = draw.integer(40, LAST + 1)
    x, positions = draw(s.B, length, s.hd + 8), torch.arange(length)
    calls = {
        f"for {length} tokens, the output of rotate": (x, positions),
        "with a single pair of channels, the output of rotate": (draw(s.U, 2), torch.arange(s.U)),
    }
    agree("rotate", calls)


@layer.values(0.5, "The positions are an argument: what are they used for?")
def test_positions(reference, agree, draw, s):
    """turns each token by the position that is given for it"""
    x = draw(s.B, s.T, s.hd)
    counting, any_order = torch.arange(s.T), drawn_positions(draw, s.T)
    for positions, label in (
        (counting + 21, "positions from 21 on"),
        (any_order, "positions in any order"),
    ):
        guesses = {
            f"with {label}, tokens are counted from 0": reference.call("rotate", x, counting).output
        }
        agree("rotate", {f"with {label}, the output of rotate": (x, positions)}, guesses)
    for position in (37, 0):
        label, args = (
            f"for a single token at position {position}",
            (x[:, :1].clone(), torch.tensor([position])),
        )
        agree("rotate", {f"{label}, the output of rotate": args})


@layer.values(0.25, "base is an argument of both functions. Where is it handed on?")
def test_base(attempt, reference, agree, draw, s):
    """takes the base that it is given"""
    base = 1000.0 * draw.integer(2, 5) + 7
    # a new width, so that no earlier call had the same speeds
    args = draw(s.B, s.T, s.hd + 2), drawn_positions(draw, s.T)
    for base_args, label in (
        ((base,), f"with a base of {base:,.0f}"),
        ((), "without a base, after another one"),
    ):
        got, want = (c.call("rotate", *args, *base_args) for c in (attempt, reference))
        keeps_state = not base_args and same(
            got.output, reference.call("rotate", *args, base).output
        )
        expect(
            not keeps_state,
            f"rotate turns with a base of {base:,.0f}, that of the call before this one",
            "state_kept",
        )
        assert_matches(got, want, f"{label}, the output of rotate")
    for name, kwargs in turned_of(draw, s).items():
        evidence, usual = (
            f"{name} turns with a base of 10,000 where it is given {base:,.0f}",
            kwargs.values(),
        )
        calls = {f"with a base of {base:,.0f}, the output of {name}": (*usual, base)}
        agree(name, calls, {evidence: reference.call(name, *usual).output})


@layer.hygiene(0.25, "With an odd number of channels, which one has no partner?")
def test_refuses(attempt, draw, s):
    """refuses an odd number of channels"""
    positions = drawn_positions(draw, s.T)
    # an attempt that refuses everything fails here
    attempt.call("rotate", draw(s.B, s.T, s.hd), positions).must_return()
    for hd in (s.hd - 1, s.hd + 3):
        shared.expect_refused(
            attempt.call("rotate", draw(s.B, s.T, hd), positions),
            f"a head of {hd} channels",
            "number",
        )


@layer.causality(0.5, "Move the whole text along by a few positions: may any score change?")
def test_differences(attempt, draw, s):
    """scores differences of positions, and nothing else of them"""
    q, k = draw(s.B, s.U, s.hd), draw(s.B, s.T, s.hd)
    q_positions, k_positions = torch.arange(s.U) + s.T - s.U, torch.arange(s.T)
    baseline = attempt.call("rotary_scores", q, k, q_positions, k_positions)
    assert_shape(baseline, (s.B, s.U, s.T), "the scores")
    later = attempt.call("rotary_scores", q, k, q_positions + 23, k_positions + 23)
    assert_same(baseline, later, "all tokens moved on by 23 positions, and the scores changed")
    for by_q, by_k, side in ((23, 0, "queries"), (0, 23, "keys")):
        apart = attempt.call("rotary_scores", q, k, q_positions + by_q, k_positions + by_k)
        assert_shape(apart, (s.B, s.U, s.T), "the scores")
        expect(
            not same(apart.output, baseline.output),
            f"the {side} alone moved on by 23 positions, and no score changed",
        )


@layer.values(0.75, "Turn both sides, each by its own positions, then divide by √head_dim.")
def test_rotary_scores(attempt, reference, agree, draw, s):
    """scores turned queries against turned keys, over √head_dim"""
    q, k = draw(s.B, s.U, s.hd), draw(s.B, s.U, s.hd)
    args = (q, k, drawn_positions(draw, s.U), drawn_positions(draw, s.U))
    got, want = (c.call("rotary_scores", *args).output for c in (attempt, reference))
    shared.expect_unscaled(got, want)
    expect(
        not same(got, q @ k.mT / s.hd**0.5),
        "the scores are those of queries and keys that were not turned",
    )
    assert_matches(got, want, "the scores")
    as_many = "with as many keys as channels, the scores"
    calls = {
        "with more keys, the scores": calls_of(draw, s)["rotary_scores"].values(),
        as_many: (
            draw(s.hd, s.U, s.hd),
            draw(s.hd, s.hd, s.hd),
            drawn_positions(draw, s.U),
            drawn_positions(draw, s.hd),
        ),
        "in a long text, the scores": (
            *(draw(s.B, T, s.hd + 8) for T in (41, 57)),
            drawn_positions(draw, 41),
            drawn_positions(draw, 57),
        ),
    }
    agree("rotary_scores", calls)


@layer.values(0.5, "While a model writes, the one query is not at position 0.")
def test_decoding(attempt, reference, draw, s):
    """scores one new query as it does among others"""
    q, k = draw(s.B, s.T, s.hd), draw(s.B, s.T, s.hd)
    positions = torch.arange(s.T) + 5
    newest = (q[:, -1:].clone(), k, positions[-1:].clone(), positions)
    got, want = (c.call("rotary_scores", *newest) for c in (attempt, reference))
    from_zero = reference.call("rotary_scores", *newest[:2], positions[:1] * 0, positions)
    evidence = "a single query is taken for the first token, whatever its position is"
    expect(not same(got.output, from_zero.output), evidence)
    assert_matches(got, want, "for one query, the scores")
    all_scores = attempt.call("rotary_scores", q, k, positions, positions)
    assert_shape(all_scores, (s.B, s.T, s.T), "the scores")
    assert_same(
        all_scores.output[:, -1:], got, "the last query has other scores when it stands alone"
    )


@layer.values(0.75, "In each head: first the first channels of all pairs, then the second ones.")
def test_pairs_to_halves(attempt, reference, draw, s):
    """moves the rows of each head, and keeps what stands in them"""
    square = (3, 4, 12)
    for n_head, hd, C_in in (
        (s.nh, s.hd, s.C_in),
        (1, s.hd, s.C_in),
        (s.hd, s.nh, s.C_in),
        (s.nh, 2, s.C_in),
        square,
    ):
        weight = draw(n_head * hd, C_in)
        got, want = (c.call("pairs_to_halves", weight, n_head) for c in (attempt, reference))
        label = (
            f"for {n_head} heads of {hd} channels{' and as many inputs' * (C_in == n_head * hd)}"
        )
        assert_shape(got, weight.shape, f"{label}, the output of pairs_to_halves")
        if hd > 2:
            expect(not same(got.output, weight), f"{label}, the rows are where they were")
        keeps_numbers = same(got.output.flatten().sort().values, weight.flatten().sort().values)
        expect(
            keeps_numbers,
            f"{label}, numbers were changed or lost: rows only change places",
        )
        assert_matches(got, want, f"{label}, the output of pairs_to_halves")


@layer.values(0.25, "Do pairs_to_halves and rotate mean the same pairs?")
def test_same_scores(attempt, draw, s):
    """gives the scores of pairs where halves are turned"""
    x, positions = draw(s.T, s.C_in), drawn_positions(draw, s.T)
    weights = [draw.weights(s.nh * s.hd, s.C_in) for _ in "qk"]
    moved = [attempt.call("pairs_to_halves", weight, s.nh).output for weight in weights]
    for weight, rows in zip(weights, moved, strict=True):
        assert_shape(rows, weight.shape, "the output of pairs_to_halves")
    q, k = (
        (x @ weight.T).unflatten(-1, (s.nh, s.hd)).transpose(0, 1).contiguous()
        for weight in weights
    )
    pairs = attempt.call("rotary_scores", q, k, positions, positions)
    in_halves = (
        (x @ rows.double().T).unflatten(-1, (s.nh, s.hd)).transpose(0, 1) for rows in moved
    )
    q, k = (turned_in_halves(channels, positions) for channels in in_halves)
    assert_shape(pairs, (s.nh, s.T, s.T), "the scores")
    assert_same(
        pairs,
        q @ k.mT / s.hd**0.5,
        "with the reordered weights, halves do not score as pairs do with yours",
    )


@layer.causality(0.25, "Count axes from the end: the last is −1, the one before it −2.")
def test_leading_dimensions(attempt, draw, s):
    """gives a sequence in a batch the same as alone"""
    q, k = draw(s.B, s.H, s.U, s.hd), draw(s.B, s.H, s.U, s.hd)
    q_positions, k_positions = drawn_positions(draw, s.U), drawn_positions(draw, s.U)
    shared.expect_same_alone(attempt, "rotate", (q,), (q_positions,), (s.B, s.H, s.U, s.hd))
    shared.expect_same_alone(
        attempt, "rotary_scores", (q, k), (q_positions, k_positions), (s.B, s.H, s.U, s.U)
    )


def turns_by_position(attempt, draw):
    """Yield the condition that the effect of a position on a token depends on the token."""
    token, other_token = draw(10), draw(10)
    positions = torch.tensor([3, 3, 29, 29])
    answer = attempt.call(
        "rotate", torch.stack([token, other_token, token, other_token]), positions
    )
    yield Condition(
        "interaction", answer, "positions decide nothing: they change no token in a way of its own"
    )


PRECONDITIONS = {"rotate": turns_by_position}
test_gradients = asked_of(
    turned_of, shared.gradients, "lets the right gradients through to x, q and k"
)
test_leaves_its_arguments = asked_of(calls_of, shared.leaves_its_arguments)
test_dtype = asked_of(calls_of, shared.dtype)
test_device = asked_of(calls_of, shared.device, hint="The angles belong where the channels are.")
