"""Hidden checks of rotary positions.

Pairs of channels are turned, scores depend on differences of positions alone, and weights are
reordered for the other layout.
"""

import torch

from manyheads.checks import (
    Condition,
    Evidence,
    SafeText,
    agrees,
    assert_differs,
    assert_matches,
    assert_same,
    assert_shape,
    check,
    expect,
    function_contract,
)

from ._functions import expect_refused, expect_same_alone, expect_shapes, expect_unscaled

LAST = 63  # positions are integers from 0 to here
BASE = 10000.0
SIZES = {"B": [5], "H": [3], "T": [11, 12], "U": [9], "hd": [10, 14], "nh": [6], "C_in": [7]}


def turns(hd, positions, base=BASE):
    """Return by which factor each position turns each pair, as complex numbers: (T, hd / 2)."""
    angles = positions[:, None] * base ** -(torch.arange(0, hd, 2, dtype=torch.float64) / hd)
    return torch.polar(torch.ones_like(angles), angles)


def rotate_oracle(x, positions, base=BASE):
    """Return x with each pair of neighbours multiplied, as a complex number, by its factor."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns(x.shape[-1], positions, base)).flatten(-2)


def scores_oracle(q, k, q_positions, k_positions, base=BASE):
    q, k = rotate_oracle(q, q_positions, base), rotate_oracle(k, k_positions, base)
    return torch.einsum("...qc,...kc->...qk", q, k) * q.shape[-1] ** -0.5


def halves_oracle(weight, n_head):
    """Return the rows of each head with even numbers first, then those with odd ones."""
    heads = [torch.cat([head[0::2], head[1::2]]) for head in weight.chunk(n_head)]
    return torch.cat(heads)


def turned_in_halves(x, positions):
    """Return x turned in the layout that pairs channel i with channel i + hd/2."""
    pairs = torch.complex(*x.chunk(2, dim=-1)) * turns(x.shape[-1], positions)
    return torch.cat([pairs.real, pairs.imag], dim=-1)


def drawn_positions(draw, count):
    """Return different positions in random order, which do not simply count up."""
    return draw(LAST + 1).argsort()[:count].clone()


def arguments(draw, s=None):
    """Return arguments of every function by name, with one leading dimension."""
    s = s or draw.sizes(**SIZES)
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


def turned_arguments(draw, s=None):
    """Return the same for the functions that turn channels."""
    all_arguments = arguments(draw, s)
    return {name: all_arguments[name] for name in ("rotate", "rotary_scores")}


@check(points=0.25, layer="shape")
def test_shapes(attempt, reference, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    expect_shapes(attempt, reference, arguments(draw))


@check(
    points=0.75,
    layer="values",
    hint="Which channels are a pair, which way do they turn, and how fast is pair i?",
)
def test_rotate(attempt, draw, sizes):
    """turns neighbouring channels, each pair at its own speed"""
    B, T, U, hd = sizes.B, sizes.T, sizes.U, sizes.hd
    x, positions = draw(B, T, hd), torch.arange(T)
    expected = rotate_oracle(x, positions)
    mistakes = {
        "nothing is turned": x,
        "the pairs turn the wrong way round": rotate_oracle(x, -positions),
        "channel i is paired with channel i + hd/2: here neighbours are a pair": turned_in_halves(
            x, positions
        ),
        "pairs are turned, and then put back as two halves": torch.cat(
            [expected[..., 0::2], expected[..., 1::2]], -1
        ),
    }
    turned = attempt.rotate(x, positions)
    for evidence, mistake in mistakes.items():
        assert_differs(turned, mistake, evidence)
    assert_matches(turned, expected)
    length = draw.integer(40, LAST + 1)
    x, pair = draw(B, length, hd + 8), draw(U, 2)
    expect_turned(attempt, Evidence("for {} tokens", length), x, torch.arange(length))
    expect_turned(attempt, "with a single pair of channels", pair, torch.arange(U))


def expect_turned(attempt, label, x, positions):
    """Fail unless rotate gives what its oracle gives."""
    label = Evidence("{}, the output of rotate", label)
    assert_matches(attempt.rotate(x, positions), rotate_oracle(x, positions), label)


@check(points=0.5, layer="values", hint="The positions are an argument: what are they used for?")
def test_positions(attempt, draw, sizes):
    """turns each token by the position that is given for it"""
    x = draw(sizes.B, sizes.T, sizes.hd)
    counting, any_order = torch.arange(sizes.T), drawn_positions(draw, sizes.T)
    from_zero = rotate_oracle(x, counting)
    for positions, label in (
        (counting + 21, "with positions from 21 on"),
        (any_order, "with positions in any order"),
    ):
        turned = attempt.rotate(x, positions)
        assert_differs(turned, from_zero, Evidence("{}, tokens are counted from 0", label))
        assert_matches(
            turned, rotate_oracle(x, positions), Evidence("{}, the output of rotate", label)
        )
    token = x[:, :1].clone()
    for position in (37, 0):
        label = Evidence("for a single token at position {}", position)
        expect_turned(attempt, label, token, torch.tensor([position]))


@check(
    points=0.25,
    layer="values",
    hint="base is an argument of both functions. Where is it handed on?",
)
def test_base(attempt, draw, sizes):
    """takes the base that it is given"""
    base = 1000.0 * draw.integer(2, 5) + 7
    # a new width, so that no earlier call had the same speeds
    x, positions = draw(sizes.B, sizes.T, sizes.hd + 2), drawn_positions(draw, sizes.T)
    with_base = rotate_oracle(x, positions, base)
    base_in_words = SafeText(f"{base:,.0f}")
    label = Evidence("with a base of {}, the output of", base_in_words)
    assert_matches(attempt.rotate(x, positions, base), with_base, Evidence("{} rotate", label))
    turned = attempt.rotate(x, positions)
    evidence = Evidence(
        "rotate turns with a base of {}, that of the call before this one", base_in_words
    )
    assert_differs(turned, with_base, evidence, "state_kept")
    label_of_usual = "without a base, after another one, the output of rotate"
    assert_matches(turned, rotate_oracle(x, positions), label_of_usual)
    oracles = {"rotate": rotate_oracle, "rotary_scores": scores_oracle}
    for name, kwargs in turned_arguments(draw, sizes).items():
        args, oracle = kwargs.values(), oracles[name]
        turned = attempt.call(name, *args, base)
        evidence = Evidence(
            "{} turns with a base of 10,000 where it is given {}", name, base_in_words
        )
        assert_differs(turned, oracle(*args), evidence)
        assert_matches(turned, oracle(*args, base), Evidence("{} {}", label, name))


@check(
    points=0.25, layer="hygiene", hint="With an odd number of channels, which one has no partner?"
)
def test_refuses(attempt, draw, sizes):
    """refuses an odd number of channels"""
    B, T, hd = sizes.B, sizes.T, sizes.hd
    positions = drawn_positions(draw, T)
    # an attempt that refuses everything fails here
    attempt.rotate(draw(B, T, hd), positions).must_return()
    for odd in (hd - 1, hd + 3):
        answer = attempt.rotate(draw(B, T, odd), positions)
        expect_refused(answer, Evidence("a head of {} channels", odd), "number")


@check(
    points=0.5,
    layer="causality",
    hint="Move the whole text along by a few positions: may any score change?",
)
def test_differences(attempt, draw, sizes):
    """scores differences of positions, and nothing else of them"""
    B, T, U, hd = sizes.B, sizes.T, sizes.U, sizes.hd
    q, k = draw(B, U, hd), draw(B, T, hd)
    q_positions, k_positions = torch.arange(U) + T - U, torch.arange(T)
    scores = attempt.rotary_scores(q, k, q_positions, k_positions)
    assert_shape(scores, (B, U, T), "the scores")
    later = attempt.rotary_scores(q, k, q_positions + 23, k_positions + 23)
    assert_same(scores, later, "all tokens moved on by 23 positions, and the scores changed")
    for by_q, by_k, side in ((23, 0, "queries"), (0, 23, "keys")):
        apart = attempt.rotary_scores(q, k, q_positions + by_q, k_positions + by_k)
        assert_shape(apart, (B, U, T), "the scores")
        evidence = Evidence("the {} alone moved on by 23 positions, and no score changed", side)
        assert_differs(apart, scores, evidence)


@check(
    points=0.75,
    layer="values",
    hint="Turn both sides, each by its own positions, then divide by √head_dim.",
)
def test_rotary_scores(attempt, draw, sizes):
    """scores turned queries against turned keys, over √head_dim"""
    B, U, hd = sizes.B, sizes.U, sizes.hd
    q, k = draw(B, U, hd), draw(B, U, hd)
    positions = drawn_positions(draw, U), drawn_positions(draw, U)
    scores, expected = attempt.rotary_scores(q, k, *positions), scores_oracle(q, k, *positions)
    expect_unscaled(scores, expected)
    evidence = "the scores are those of queries and keys that were not turned"
    assert_differs(scores, q @ k.mT / hd**0.5, evidence)
    assert_matches(scores, expected, "the scores")
    more_keys = arguments(draw, sizes)["rotary_scores"].values()
    as_channels = (
        draw(hd, U, hd),
        draw(hd, hd, hd),
        drawn_positions(draw, U),
        drawn_positions(draw, hd),
    )
    long = draw(B, 41, hd + 8), draw(B, 57, hd + 8)
    for args, label in (
        (more_keys, "with more keys"),
        (as_channels, "with as many keys as channels"),
        ((*long, drawn_positions(draw, 41), drawn_positions(draw, 57)), "in a long text"),
    ):
        label = Evidence("{}, the scores", label)
        assert_matches(attempt.rotary_scores(*args), scores_oracle(*args), label)


@check(points=0.5, layer="values", hint="While a model writes, the one query is not at position 0.")
def test_decoding(attempt, reference, draw, sizes):
    """scores one new query as it does among others"""
    B, T, hd = sizes.B, sizes.T, sizes.hd
    q, k = draw(B, T, hd), draw(B, T, hd)
    positions = torch.arange(T) + 5
    newest, position = q[:, -1:].clone(), positions[-1:].clone()
    scores = attempt.rotary_scores(newest, k, position, positions)
    from_zero = scores_oracle(newest, k, 0 * position, positions)
    evidence = "a single query is taken for the first token, whatever its position is"
    assert_differs(scores, from_zero, evidence)
    expected = reference.rotary_scores(newest, k, position, positions)
    assert_matches(scores, expected, "for one query, the scores")
    all_scores = attempt.rotary_scores(q, k, positions, positions)
    assert_shape(all_scores, (B, T, T), "the scores")
    evidence = "the last query has other scores when it stands alone"
    assert_same(all_scores[:, -1:], scores, evidence)


@check(
    points=0.75,
    layer="values",
    hint="In each head: first the first channels of all pairs, then the second ones.",
)
def test_pairs_to_halves(attempt, draw, sizes):
    """moves the rows of each head, and keeps what stands in them"""
    nh, hd, C_in = sizes.nh, sizes.hd, sizes.C_in
    square = (3, 4, 12)
    for n_head, head_dim, width in (
        (nh, hd, C_in),
        (1, hd, C_in),
        (hd, nh, C_in),
        (nh, 2, C_in),
        square,
    ):
        weight = draw(n_head * head_dim, width)
        moved = attempt.pairs_to_halves(weight, n_head)
        is_square = " and as many inputs" if width == n_head * head_dim else ""
        label = Evidence("for {} heads of {} channels{}", n_head, head_dim, is_square)
        assert_shape(moved, weight.shape, Evidence("{}, the output of pairs_to_halves", label))
        if head_dim > 2:
            assert_differs(moved, weight, Evidence("{}, the rows are where they were", label))
        keeps_numbers = agrees(moved.flatten().sort().values, weight.flatten().sort().values)
        evidence = Evidence("{}, numbers were changed or lost: rows only change places", label)
        expect(keeps_numbers, evidence)
        expected = halves_oracle(weight, n_head)
        assert_matches(moved, expected, Evidence("{}, the output of pairs_to_halves", label))


@check(points=0.25, layer="values", hint="Do pairs_to_halves and rotate mean the same pairs?")
def test_same_scores(attempt, draw, sizes):
    """gives the scores of pairs where halves are turned"""
    T, nh, hd, C_in = sizes.T, sizes.nh, sizes.hd, sizes.C_in
    x, positions = draw(T, C_in), drawn_positions(draw, T)
    weights = [draw.weights(nh * hd, C_in) for _ in "qk"]
    moved = [attempt.pairs_to_halves(weight, nh).output for weight in weights]
    for rows in moved:
        assert_shape(rows, (nh * hd, C_in), "the output of pairs_to_halves")
    q, k = ((x @ weight.T).unflatten(-1, (nh, hd)).transpose(0, 1) for weight in weights)
    pairs = attempt.rotary_scores(q.contiguous(), k.contiguous(), positions, positions)
    in_halves = ((x @ rows.double().T).unflatten(-1, (nh, hd)).transpose(0, 1) for rows in moved)
    q, k = (turned_in_halves(channels, positions) for channels in in_halves)
    assert_shape(pairs, (nh, T, T), "the scores")
    evidence = "with the reordered weights, halves do not score as pairs do with yours"
    assert_same(pairs, q @ k.mT / hd**0.5, evidence)


@check(
    points=0.25,
    layer="causality",
    hint="Count axes from the end: the last is −1, the one before it −2.",
)
def test_leading_dimensions(attempt, draw, sizes):
    """gives a sequence in a batch the same as alone"""
    B, H, U, hd = sizes.B, sizes.H, sizes.U, sizes.hd
    qk = draw(B, H, U, hd), draw(B, H, U, hd)
    positions = drawn_positions(draw, U), drawn_positions(draw, U)
    expect_same_alone(attempt, "rotate", qk[:1], positions[:1], (B, H, U, hd))
    expect_same_alone(attempt, "rotary_scores", qk, positions, (B, H, U, U))


CONTRACT = [
    *function_contract(
        turned_arguments,
        points=0.25,
        gradients=("lets the right gradients through to x, q and k", ""),
    ),
    *function_contract(
        arguments,
        points=0.25,
        leaves_its_arguments="",
        dtype="",
        device="The angles belong where the channels are.",
    ),
]


def turns_by_position(attempt, draw):
    """Yield the condition that the effect of a position on a token depends on the token."""
    token, other_token = draw(10), draw(10)
    tokens = torch.stack([token, other_token, token, other_token])
    answer = attempt.rotate(tokens, torch.tensor([3, 3, 29, 29]))
    evidence = "positions decide nothing: they change no token in a way of its own"
    yield Condition("interaction", answer, evidence)


PRECONDITIONS = {"rotate": turns_by_position}
