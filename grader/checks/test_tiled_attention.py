"""Hidden checks of tiled attention.

The softmax goes through its row in blocks, and attention is made from it.
"""

import torch

from manyheads.checks import (
    Evidence,
    agrees,
    assert_finite,
    assert_matches,
    assert_shape,
    assert_tensor,
    check,
    expect,
    function_contract,
    relative_change,
)
from manyheads.checks.module_expectations import expect_gradients, is_cut

from ._causal_attention import WATCHED
from ._conditions import of_queries_keys_values, of_scores

# the kernels behind every spelling of torch.softmax, and of its logarithm
SOFTMAX = {
    "softmax",
    "_softmax",
    "_safe_softmax",
    "_masked_softmax",
    "_sparse_softmax",
    "log_softmax",
    "_log_softmax",
}
PRIMES = [29, 31, 37, 41, 43]  # numbers of tokens that are no product of other sizes
UNSEEN = (
    "torch was seen to make no tensor: the numbers come from NumPy or plain Python, where no step"
    " can be watched"
)
# sizes that differ from each other, and in nearly all calls from T and the block sizes
B, NH, HD, HD_V = 3, 5, 6, 7


def online_oracle(scores):
    """Return the weights of whole rows: no blocks."""
    return torch.softmax(scores, dim=-1)


def tiled_oracle(q, k, v):
    """Return y and lse from the whole table of scores: no tiles."""
    T = q.shape[-2]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = (q / q.shape[-1] ** 0.5 @ k.mT).masked_fill(future, -torch.inf)
    return {"y": torch.softmax(scores, dim=-1) @ v, "lse": torch.logsumexp(scores, dim=-1)}


def draw_qkv(draw, T, *leading, scale=1.5, hd=HD, hd_v=None):
    """Return queries, keys and values; they have one width unless hd_v is given.

    An attempt that takes the width of y from q is wrong only where HD_V is asked for.
    """
    leading = leading or (B, NH)
    return (
        draw(*leading, T, hd, scale=scale),
        draw(*leading, T, hd, scale=scale),
        draw(*leading, T, hd_v or hd),
    )


def arguments(draw):
    """Return arguments of both functions by name."""
    scores, (q, k, v) = draw(B, 13), draw_qkv(draw, 13)
    return {
        "online_softmax": {"scores": scores, "block": 5},
        "tiled_attention": {"q": q, "k": k, "v": v, "block_q": 8, "block_k": 4},
    }


def expect_field(attempt, field, qkv, block_q, block_k, label=""):
    """Fail unless one field of tiled_attention's answer is the oracle's.

    Args:
        label: names the case in the evidence; by default its sizes do.
    """
    answer = attempt.tiled_attention(*qkv, block_q, block_k)[field]
    label = label or Evidence(
        "with T = {} and tiles of {} × {}", qkv[0].shape[-2], block_q, block_k
    )
    assert_matches(answer, tiled_oracle(*qkv)[field], Evidence("{}, {}", label, field))


def far(scores):
    """Return the scores between −1 and 1, rounded to whole 64ths.

    float32 holds them exactly, even after 1,000 is added.
    """
    return (scores.clamp(-1, 1) * 64).round() / 64


@check(
    points=0.25, layer="shape", hint="There is a weight for every score, also in the last block."
)
def test_online_shape(attempt, draw):
    """online_softmax keeps the shape of the scores, whatever the block"""
    for shape, block in (((13,), 5), ((B, 14), 7), ((B, NH, 11), 4), ((B, 13), 17)):
        answer = attempt.online_softmax(draw(*shape), block)
        assert_tensor(answer)
        assert_shape(answer, shape, Evidence("for {} and block = {}, the output", shape, block))


@check(
    points=0.25,
    layer="shape",
    hint="y has the values' width. lse is one number for each query: no axis is left.",
)
def test_tiled_shape(attempt, draw):
    """tiled_attention gives y (…, T, hd_v) and lse (…, T), for any leading dimensions and any
    blocks
    """
    for leading, T, block_q, block_k in (
        ((B, NH), 24, 8, 12),
        ((B,), 23, 4, 8),
        ((B, NH), 13, 17, 19),
    ):
        y, lse = attempt.tiled_attention(*draw_qkv(draw, T, *leading, hd_v=HD_V), block_q, block_k)
        assert_shape(y, (*leading, T, HD_V), "y")
        assert_shape(lse, (*leading, T), "lse")
    y, lse = attempt.tiled_attention(draw(23, HD), draw(23, HD), draw(23, HD_V), 8, 4)
    assert_shape(y, (23, HD_V), "without leading dimensions, y")
    assert_shape(lse, (23,), "without leading dimensions, lse")


@check(
    points=0.25, layer="finite", hint="Which row of a tile is hidden altogether? What is −∞ − (−∞)?"
)
def test_finite(attempt, draw):
    """gives numbers, also where a row of a tile is hidden altogether"""
    assert_finite(attempt.online_softmax(draw(B, 24, scale=9.0), 8))
    for block_q, block_k in ((12, 4), (4, 12), (8, 8)):
        assert_finite(attempt.tiled_attention(*draw_qkv(draw, 24), block_q, block_k))


@check(
    points=0.25,
    layer="causality",
    hint="In the tile at (top, left), key j stands at left + j, query i at top + i.",
)
def test_causal(attempt, draw):
    """lets no query see the future, in no tile"""
    q, k, v = draw_qkv(draw, 23)
    for block_q, block_k in ((9, 4), (4, 9)):
        baseline = attempt.tiled_attention(q, k, v, block_q, block_k)
        for t in (1, 10, 22):
            new_k, new_v = k.clone(), v.clone()
            new_k[..., t, :] = 2 * q[..., t, :]  # which query t hears most of all
            new_v[..., t, :] += 1 + draw(B, NH, HD).abs()
            after = attempt.tiled_attention(q, new_k, new_v, block_q, block_k)
            for field, shape in (("y", (B, NH, 23, HD)), ("lse", (B, NH, 23))):
                a, b = (answer[field].output for answer in (baseline, after))
                assert_shape(a, shape, field)
                changed = (
                    relative_change(*(x.reshape(B * NH, 23, -1) for x in (a, b))).amax(0).tolist()
                )
                early = [i for i in range(t) if changed[i] > rounding_tolerance(baseline[field])]
                evidence = Evidence(
                    "with tiles of {} × {}, key {} and its value", block_q, block_k, t
                )
                expect(
                    not early,
                    Evidence("{} reach {} of query {}", evidence, field, early and early[-1]),
                )
                expect(
                    changed[t] > 1e-9,
                    Evidence("{} do not reach {} of query {} itself", evidence, field, t),
                )


def rounding_tolerance(answer):
    """Return the tolerance for reference points that depend on all scores.

    Such a point cancels, so it changes the answer by rounding alone.
    """
    return 1e-5 if answer.dtype == "float32" else 1e-7


@check(points=0.25, layer="causality")
def test_independent(attempt, draw):
    """keeps whatever stands in the leading dimensions apart"""
    scores, qkv = draw(B, NH, 23), draw_qkv(draw, 23)
    for name, ask, args in (
        ("online_softmax", lambda scores: attempt.online_softmax(scores, 8), (scores,)),
        ("tiled_attention", lambda *qkv: attempt.tiled_attention(*qkv, 8, 4)["y"], qkv),
    ):
        edited = [x.clone() for x in args]
        for x in edited:
            x[1, 2] = draw(*x[1, 2].shape)
        answer = ask(*args)
        original, after = answer.output, ask(*edited).output
        assert_shape(original, args[-1].shape, name)
        assert_shape(after, args[-1].shape, name)
        difference = (original.nan_to_num() - after.nan_to_num()).flatten(2).abs().amax(-1)
        changed = difference > rounding_tolerance(answer)
        changed[1, 2] = False
        evidence = Evidence(
            "{}: what stands at (1, 2) of the leading dimensions changes what stands elsewhere",
            name,
        )
        expect(not changed.any(), evidence)


@check(
    points=0.25,
    layer="values",
    hint="A single block has nothing to correct: exponentials, over their sum.",
)
def test_online_one_block(attempt, draw):
    """online_softmax is right where the row is one block"""
    for shape, block in (((B, 13), 13), ((NH, B, 11), 16)):
        scores = draw(*shape, scale=2.0)
        assert_matches(attempt.online_softmax(scores, block), online_oracle(scores))


@check(
    points=0.5,
    layer="values",
    hint="A block brings a larger score. By which factor is the old sum too large now?",
)
def test_online_values(attempt, draw):
    """online_softmax is right over many blocks, wherever the largest score stands"""
    rising = torch.linspace(-9, 9, 24, dtype=torch.float64)
    rows = {
        "where each block has a larger score than all before": rising + draw(B, 24),
        "where the first block has the largest score": rising.flip(0) + draw(B, 24),
        "of random scores": draw(B, NH, 24, scale=3.0),
        "of low scores": draw(B, 24) - 40,
        "of high scores": draw(B, 24) + 40,
        "of scores near −1,000": far(draw(B, 24)) - 1000,
        "of scores that fall from 1,000 to −1,000": (
            far(draw(B, 24)) - torch.linspace(-999, 999, 24).round()
        ),
        "of scores that rise from −1,000 to 1,000": (
            far(draw(B, 24)) + torch.linspace(-999, 999, 24).round()
        ),
    }
    for case, scores in rows.items():
        for block in (8, 4, 1):
            weights = attempt.online_softmax(scores, block)
            expected = online_oracle(scores)
            label = Evidence("with block = {}, the weights {}", block, case)
            if "1,000" in case:  # float32 rounds the logarithm of a sum near 1,000 to 6e-5
                assert_shape(weights, expected.shape, label)
                expect((weights - expected).abs().max() <= 1e-3, Evidence("{} are others", label))
            else:
                assert_matches(weights, expected, label)
    scores = draw(2, 60, scale=3.0)
    label = "of 60 scores, the weights"
    assert_matches(attempt.online_softmax(scores, 12), online_oracle(scores), label)


@check(
    points=0.25,
    layer="values",
    hint="23 scores in blocks of 8 are three blocks. How long is the last one?",
)
def test_online_ragged(attempt, draw):
    """online_softmax is right where T is no multiple of the block"""
    for T, block in ((23, 8), (13, 4), (11, 10), (draw.sizes(T=PRIMES).T, 8)):
        scores = draw(B, NH, T, scale=3.0)
        label = Evidence("with T = {} and block = {}, the weights", T, block)
        assert_matches(attempt.online_softmax(scores, block), online_oracle(scores), label)


@check(
    points=0.5,
    layer="values",
    hint="One tile: scores over √hd, the future hidden, softmax, values. Then cut it up.",
)
def test_one_tile(attempt, draw):
    """attends right where all is one tile"""
    for T, block_q, block_k, hd in ((11, 16, 19, 9), (13, 13, 13, HD), (9, 9, 9, 9)):
        expect_field(attempt, "y", draw_qkv(draw, T, hd=hd), block_q, block_k, "in a single tile")


@check(
    points=0.75,
    layer="values",
    hint="m, the sum and the gathered values are carried from tile to tile, and corrected.",
)
def test_values(attempt, draw):
    """attends right in tiles of any size"""
    for scale in (1.5, 2.5):
        qkv = draw_qkv(draw, 24, scale=scale)
        for blocks in ((8, 8), (12, 4), (4, 12), (8, 3), (1, 2)):
            expect_field(attempt, "y", qkv, *blocks)
    expect_field(attempt, "y", draw_qkv(draw, 60, 2, hd_v=HD_V), 12, 20)
    q, k, v = (abs(x) for x in draw_qkv(draw, 24))
    # each tile has larger scores than all before
    k = k * torch.linspace(0.5, 4, 24, dtype=torch.float64)[:, None]
    expect_field(attempt, "y", (q, k, v), 8, 4, "where scores grow from tile to tile")


@check(
    points=0.5,
    layer="values",
    hint="log of the sum of exponentials: m, plus the log of the sum that is left.",
)
def test_lse(attempt, draw):
    """gives the log-sum-exp of each query's scaled scores"""
    for T, *blocks in (
        (13, 17, 19),
        (24, 8, 12),
        (24, 12, 4),
        (23, 4, 9),
        (draw.sizes(T=PRIMES).T, 8, 4),
    ):
        expect_field(attempt, "lse", draw_qkv(draw, T), *blocks)


@check(points=0.25, layer="values", hint="Which queries, and which keys, are in no whole tile?")
def test_ragged(attempt, draw):
    """attends right where T is no multiple of the blocks"""
    for T, *blocks in ((23, 8, 4), (23, 4, 9), (13, 11, 5), (draw.sizes(T=PRIMES).T, 8, 4)):
        expect_field(attempt, "y", draw_qkv(draw, T), *blocks)


@check(
    points=0.25,
    layer="gradients",
    hint="A tensor that is filled in place, detached or remade loses its gradient.",
)
def test_gradients(attempt, reference, draw):
    """lets gradients through y to q, k and v"""
    qkv, names, g = draw_qkv(draw, 13), ("args.0", "args.1", "args.2"), draw(B, NH, 13, HD)
    got, want = (
        implementation.with_options(cotangent=(g, None)).tiled_attention(*qkv, 8, 4)
        for implementation in (attempt, reference)
    )

    def with_them(other_args, q):
        return attempt.tiled_attention(q, *other_args.values(), 8, 4)["y"].output

    def cut():
        # A detached maximum is right if it cancels. In wrong values it may not cancel, which
        # follows from the wrong values.
        is_wrong = (
            relative_change(got["y"].output.flatten(0, 1), want["y"].output.flatten(0, 1)).max()
            > 1e-5
        )
        other_args = dict(zip(names[1:], qkv[1:], strict=True))
        return not (is_wrong or got.reply.mutated) and is_cut(
            with_them, other_args, qkv[0], g, got, want
        )

    expect_gradients(got, want, names, cut, missing="gradient_cut")


@check(
    points=1.25,
    layer="hygiene",
    hint="Print the shapes that you make. Scores, weights, a mask: which is (T, T)?",
)
def test_not_materialised(attempt, draw):
    """makes no tensor with two axes of length T"""
    for T, block_q, block_k in ((draw.sizes(T=PRIMES).T, 8, 4), (draw.sizes(T=PRIMES).T, 4, 12)):
        qkv = draw_qkv(draw, T)
        answer = attempt.with_options(watch=True).tiled_attention(*qkv, block_q, block_k)
        plain = attempt.tiled_attention(*qkv, block_q, block_k)
        assert_shape(answer["y"], (B, NH, T, HD), "y")
        assert_shape(answer["lse"], (B, NH, T), "lse")
        expect(answer.reply.operations.shapes, UNSEEN)
        for field in ("y", "lse"):
            expect(agrees(answer[field], plain[field]), WATCHED)
        # the lengths of T filled up to whole blocks count as well
        lengths = {T, T + 1, *(-(-T // block) * block for block in (block_q, block_k))}
        shapes = answer.reply.operations.shapes
        squares = [shape for shape in shapes if is_square(shape, T, lengths)]
        evidence = Evidence(
            "with T = {} and tiles of {} × {}, a tensor of shape {} is made",
            T,
            block_q,
            block_k,
            squares and tuple(squares[0]),
        )
        expect(not squares, Evidence("{} on the way: the square is back", evidence), "materialised")


def is_square(shape, T, lengths):
    """Return whether two axes have one of these lengths, or one axis holds T · T numbers."""
    one_axis_holds_both = any(size and size % T**2 == 0 for size in shape)
    return one_axis_holds_both or sum(size in lengths for size in shape) > 1


@check(points=0.5, layer="hygiene", hint="exp, sum and a division are all that it takes.")
def test_written_out(attempt, draw):
    """online_softmax is written out"""
    T = draw.sizes(T=PRIMES).T
    scores = draw(B, T)
    answer = attempt.with_options(watch=True).online_softmax(scores, 8)
    plain = attempt.online_softmax(scores, 8)
    assert_shape(answer, (B, T))
    expect(answer.reply.operations.shapes, UNSEEN)
    expect(agrees(answer, plain), WATCHED)
    evidence = (
        "torch.softmax, or its logarithm, does the work: here the exponentials and their sum are"
        " yours"
    )
    expect(not SOFTMAX & set(answer.reply.operations.kernels), evidence, "delegated")


CONTRACT = function_contract(
    arguments,
    points=0.25,
    leaves_its_arguments=(
        "leaves scores, q, k and v as they were",
        "Names that end in _, and assignments such as q /= …, change the tensor itself.",
    ),
    dtype=(
        "returns the dtype that it is given",
        "A new tensor is float32 unless you say otherwise: full_like, or dtype=q.dtype.",
    ),
    stays_on_the_device="Positions, −∞ and zeros that you make need a device: that of q.",
)

PRECONDITIONS = {
    "online_softmax": of_scores("online_softmax", 4, queries=()),
    "tiled_attention": of_queries_keys_values("tiled_attention", 4, 2, width=HD, tokens=8),
}
