"""Hidden checks of the sliding window: a band that ends in the lower right corner, and attention behind it."""

from types import SimpleNamespace

import torch

from manyheads.checks import CheckFailed, Layer, assert_finite, assert_shape, check, expect
from manyheads.checks.asserts import TOLERANCE

from ._functions import (
    agree,
    device,
    dtype,
    gradients,
    is_refused,
    leaves_its_arguments,
    mask_is_boolean,
    seen_in,
    shapes,
    treats_leading_alone,
)
from ._modules import asked_of
from ._shares import attends_to_one_key

DEEP = -40.0  # scores are lowered by so much: a finite fill must lie far below that


def sizes_of(draw):
    """Sizes that differ pairwise, none of them usual in lessons: fewer queries (U) than keys (T), a window (W) below both."""
    return draw.sizes(B=[5], H=[3], T=[11, 12], U=[9], W=[4], hd=[7], hv=[13])


def band(queries, keys, window):
    """The oracle: one query and one key at a time."""
    first = keys - queries
    return torch.tensor(
        [[0 <= first + row - key < window for key in range(keys)] for row in range(queries)], dtype=torch.bool
    )


def qkv(draw, s, queries, keys, *leading):
    """Arguments with these leading dimensions, by default one."""
    leading = leading or (s.B,)
    return [draw(*leading, rows, width) for rows, width in ((queries, s.hd), (keys, s.hd), (keys, s.hv))]


def masks_of(draw, s=None):
    """The function that makes a mask, with arguments for it by name."""
    s = s or sizes_of(draw)
    return {"window_mask": {"T_q": s.U, "T_k": s.T, "window": s.W}}


def calls_of(draw, s=None):
    """The function that is differentiable, with arguments for it by name."""
    s = s or sizes_of(draw)
    return {"local_attention": dict(zip(("q", "k", "v", "window"), (*qkv(draw, s, s.U, s.T), s.W), strict=True))}


def both_of(draw):
    """Both functions with arguments for them by name."""
    s = sizes_of(draw)
    return {**masks_of(draw, s), **calls_of(draw, s)}


def deep_qkv(draw, s, queries, keys, loud=0):
    """Arguments whose scores lie around DEEP, or as high with the first `loud` keys: a constant channel of the queries
    meets one of the keys."""
    q, k, v = qkv(draw, s, queries, keys)
    q[..., 0], k[..., 0] = s.hd**0.5, DEEP
    k[:, :loud, 0] = -DEEP
    return q, k, v


def assert_band(attempt, queries, keys, window):
    """The mask of these sizes, told apart by what is wrong with it."""
    mask = attempt.call("window_mask", queries, keys, window).output
    what = f"{queries} queries, {keys} keys and a window of {window}"
    assert_shape(mask, (queries, keys), f"the mask for {what}")
    seen, right = seen_in(mask), band(queries, keys, window)
    if torch.equal(seen, right):
        return
    square = torch.ones(queries, keys, dtype=torch.bool)
    stands = keys - queries
    expect(not torch.equal(seen, ~right), "True and False are swapped: True means may look")
    expect(
        not torch.equal(seen, square.tril().triu(1 - window)), f"for {what} the band begins in the upper left corner"
    )
    ahead, behind = square.triu(stands + 1), square.tril(stands - window)
    own = bool(seen.diagonal(stands).all())
    expect(own, f"for {what} a query does not see the key it stands at; the last query stands at the last key")
    expect(not (seen & ahead).any(), f"for {what} a query sees a key of its future")
    expect(not (seen & behind).any(), f"for {what} a query sees a key that lies {window} or more before it")
    raise CheckFailed(f"for {what} a query does not see all of itself and the {window - 1} keys before it")


test_shapes = asked_of(both_of, shapes)
test_mask_is_boolean = asked_of(masks_of, mask_is_boolean)


@check(
    points=0.75, layer=Layer.VALUES, hint="Two conditions for each pair: not ahead of the query, not too far behind."
)
def test_window_mask(attempt, draw):
    """lets every token see itself and the window − 1 tokens before it"""
    s = sizes_of(draw)
    many = draw.integer(40, 64)
    for size, window in ((s.T, s.W), (s.U, s.W + 2), (many, draw.integer(20, 30))):
        assert_band(attempt, size, size, window)


@check(
    points=0.75, layer=Layer.VALUES, hint="At which position does query 0 stand, when there are more keys than queries?"
)
def test_fewer_queries(attempt, draw):
    """stands the last query at the last key"""
    s = sizes_of(draw)
    many = draw.integer(40, 64)
    for queries, keys, window in (
        (s.U, s.T, s.W),
        (2, s.T, s.W + 1),
        (draw.integer(20, 30), many, s.U),
        (1, s.T, s.W - 1),
    ):
        assert_band(attempt, queries, keys, window)


@check(
    points=0.25, layer=Layer.VALUES, hint="With a window of 1 a token sees itself; a wide one hides the future alone."
)
def test_narrow_and_wide(attempt, draw):
    """is right for a window of 1, and for one as wide as the text or wider"""
    s = sizes_of(draw)
    for queries, keys, window in ((s.T, s.T, 1), (s.U, s.T, 1), (s.T, s.T, s.T), (s.U, s.T, s.T + 5), (1, 1, 1)):
        assert_band(attempt, queries, keys, window)


@check(
    points=0.5,
    layer=Layer.HYGIENE,
    hint="Which two calls make no sense? Look at the numbers before you build anything.",
)
def test_refuses(attempt, draw):
    """refuses a window below 1, and more queries than keys"""
    s = sizes_of(draw)
    assert_shape(attempt.call("window_mask", s.U, s.T, s.W), (s.U, s.T), "the mask")
    for queries, keys, window in ((s.T, s.T, 0), (s.U, s.T, -2), (s.T, s.U, s.W)):
        what = f"a window of {window}" if window < 1 else f"a mask for {queries} queries and {keys} keys"
        answer = attempt.call("window_mask", queries, keys, window)
        is_refused(answer, what, "numbers")


@check(points=0.25, layer=Layer.FINITE, hint="Is there a row that sees no key, or a zero that meets an infinity?")
def test_finite(attempt, draw):
    """gives answers without NaN"""
    s = sizes_of(draw)
    for queries in (s.T, s.U):
        assert_finite(attempt.call("local_attention", *qkv(draw, s, queries, s.T), s.W), "the answers")


@check(points=0.5, layer=Layer.CAUSALITY, hint="Edit one key and its value: which answers may move?")
def test_reach(attempt, draw):
    """uses nothing ahead, and nothing that slid out of the window"""
    s = sizes_of(draw)
    q, k, v = qkv(draw, s, s.U, s.T)
    before = attempt.call("local_attention", q, k, v, s.W)
    assert_shape(before, (s.B, s.U, s.hv), "the answers")
    seen = band(s.U, s.T, s.W)
    for key in (s.T - 2, s.T - s.W - 2):
        new_k, new_v = k.clone(), v.clone()
        new_k[:, key], new_v[:, key] = draw(s.B, s.hd, scale=2.0), draw(s.B, s.hv, scale=2.0)
        after = attempt.call("local_attention", q, new_k, new_v, s.W)
        assert_shape(after, (s.B, s.U, s.hv), "the answers")
        moved = (before.output - after.output).abs().amax((0, -1)) > TOLERANCE * before.output.abs().max()
        stands = s.T - s.U
        for i, (has_moved, may_see) in enumerate(zip(moved.tolist(), seen[:, key].tolist(), strict=True)):
            where = "ahead of it" if key > stands + i else f"{stands + i - key} before it, and the window is {s.W}"
            expect(not has_moved or may_see, f"query {i} of {s.U} depends on key {key} of {s.T}, which lies {where}")
            expect(
                has_moved or not may_see,
                f"query {i} of {s.U} does not depend on key {key} of {s.T}, which it should see",
            )


@check(points=0.75, layer=Layer.VALUES, hint="Scores over √head_dim, hide, share out, mix: in this order.")
def test_local_attention(attempt, reference, draw):
    """answers each query from what it sees"""
    s = sizes_of(draw)
    wide, even = (SimpleNamespace(**{**vars(s), **other}) for other in ({"hd": 10}, {"hv": s.hd}))
    calls = {
        "the answers": (*qkv(draw, s, s.T, s.T), s.W),
        "the answers to low scores": (*deep_qkv(draw, s, s.T, s.T), s.W + 1),
        "the answers beside louder keys that slid out": (*deep_qkv(draw, s, 2, s.T, s.T - s.W - 2), s.W),
        "the answers under a window of 1": (*qkv(draw, s, s.U, s.U), 1),
        "the answers under a window wider than the text": (*qkv(draw, s, s.U, s.U), s.T + 5),
        "the answers of wider heads in a long text": (*qkv(draw, wide, 53, 53), 37),
        "the answers of as many tokens as channels": (*qkv(draw, even, s.hd, s.hd, s.hd), s.W),
    }
    agree(attempt, reference, "local_attention", calls)


@check(
    points=0.5,
    layer=Layer.VALUES,
    hint="While a model writes, the newest tokens ask. Where do they stand among the keys?",
)
def test_decoding(attempt, reference, draw):
    """answers the last queries as if the first had asked too"""
    s = sizes_of(draw)
    calls = {
        f"for one query and {s.T} keys, the output of local_attention": (*qkv(draw, s, 1, s.T), s.W + 2),
        f"for {s.U} queries and {s.T} keys, the output of local_attention": (*qkv(draw, s, s.U, s.T), s.W),
        "for 47 keys and two leading dimensions, the output": (*qkv(draw, s, s.T, 47, 2, s.H), s.U),
    }
    agree(attempt, reference, "local_attention", calls)


@check(points=0.25, layer=Layer.CAUSALITY, hint="Count axes from the end: the last is −1, the one before it −2.")
def test_leading_dimensions(attempt, draw):
    """gives a sequence in a batch the same as alone"""
    s = sizes_of(draw)
    args = qkv(draw, s, s.T, s.T, s.B, s.H)
    treats_leading_alone(attempt, "local_attention", args, (s.W,), (s.B, s.H, s.T, s.hv))


test_gradients = asked_of(calls_of, gradients, "lets the right gradients through to q, k and v")
test_leaves_its_arguments = asked_of(calls_of, leaves_its_arguments)
test_dtype = asked_of(calls_of, dtype)
test_device = asked_of(
    both_of,
    device,
    "makes the mask on the device that is asked for",
    hint="The mask belongs where the scores are.",
)

COUNTS_IF = {"local_attention": attends_to_one_key("local_attention", 4)}
