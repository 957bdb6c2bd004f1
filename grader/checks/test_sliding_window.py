"""Hidden checks of the sliding window: a band that ends in the lower right corner, and attention behind it."""

from types import SimpleNamespace

import torch

from manyheads.box.worker.messages import DeviceArgument
from manyheads.checks import CheckFailed, Layer, assert_finite, assert_matches, assert_shape, check, expect
from manyheads.checks.asserts import TOLERANCE

from ._functions import (
    dtype,
    gives_one_tensor,
    is_refused,
    keeps_the_device,
    leaves_its_arguments,
    lets_gradients_through,
    on_meta,
    treats_leading_alone,
)
from ._modules import asked_of
from ._shares import alike, shares_out

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


def seen_in(mask):
    """Where a query may look: the dtype is a check of its own, so here an additive mask is read as it is meant."""
    additive = mask.dtype.is_floating_point and bool((mask < -1).any())
    return mask > -1 if additive else mask != 0


def qkv(draw, s, queries, keys, *leading):
    """Arguments with these leading dimensions, by default one."""
    leading = leading or (s.B,)
    return [draw(*leading, rows, width) for rows, width in ((queries, s.hd), (keys, s.hd), (keys, s.hv))]


def attended(draw, s):
    """Arguments of local_attention by name."""
    return dict(zip(("q", "k", "v", "window"), (*qkv(draw, s, s.U, s.T), s.W), strict=True))


def calls_of(draw):
    """The function that is differentiable, with arguments for it by name."""
    return {"local_attention": attended(draw, sizes_of(draw))}


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


@check(points=0.25, layer=Layer.SHAPE)
def test_shapes(attempt, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    s = sizes_of(draw)
    calls = {
        "window_mask": ({"T_q": s.U, "T_k": s.T, "window": s.W}, (s.U, s.T)),
        "local_attention": (attended(draw, s), (s.B, s.U, s.hv)),
    }
    for name, (kwargs, shape) in calls.items():
        gives_one_tensor(attempt, name, kwargs, shape)


@check(points=0.25, layer=Layer.HYGIENE, hint="What is the dtype of a comparison, or of torch.ones without dtype=?")
def test_mask_is_boolean(attempt, draw):
    """makes a boolean mask"""
    s = sizes_of(draw)
    answer = attempt.call("window_mask", s.U, s.T, s.W)
    expect(answer.kind == "tensor", f"window_mask should return a tensor; yours is {answer.returned}", "interface")
    expect(answer.dtype == "bool", f"the mask should be of dtype bool; yours is {answer.dtype}", "mask_not_bool")


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
    for what, args in calls.items():
        assert_matches(attempt.call("local_attention", *args), reference.call("local_attention", *args), what)


@check(
    points=0.5,
    layer=Layer.VALUES,
    hint="While a model writes, the newest tokens ask. Where do they stand among the keys?",
)
def test_decoding(attempt, reference, draw):
    """answers the last queries as if the first had asked too"""
    s = sizes_of(draw)
    for queries, window in ((1, s.W + 2), (s.U, s.W)):
        what = f"for {'one query' if queries == 1 else f'{queries} queries'} and {s.T} keys"
        args = (*qkv(draw, s, queries, s.T), window)
        got, want = (c.call("local_attention", *args) for c in (attempt, reference))
        assert_matches(got, want, f"{what}, the output of local_attention")
    args = (*qkv(draw, s, s.T, 47, 2, s.H), s.U)
    assert_matches(
        attempt.call("local_attention", *args),
        reference.call("local_attention", *args),
        "for 47 keys and two leading dimensions, the output",
    )


@check(points=0.25, layer=Layer.CAUSALITY, hint="Count axes from the end: the last is −1, the one before it −2.")
def test_leading_dimensions(attempt, draw):
    """gives a sequence in a batch the same as alone"""
    s = sizes_of(draw)
    args = qkv(draw, s, s.T, s.T, s.B, s.H)
    treats_leading_alone(attempt, "local_attention", args, (s.W,), (s.B, s.H, s.T, s.hv))


@check(points=0.25, layer=Layer.GRADIENTS)
def test_gradients(attempt, reference, draw):
    """lets the right gradients through to q, k and v"""
    s = sizes_of(draw)
    lets_gradients_through(attempt, reference, draw, "local_attention", attended(draw, s), "qkv")


test_leaves_its_arguments = asked_of(calls_of, leaves_its_arguments)
test_dtype = asked_of(calls_of, dtype)


@check(points=0.25, layer=Layer.HYGIENE, hint="The mask belongs where the scores are.")
def test_device(attempt, draw):
    """makes the mask on the device that is asked for"""
    s = sizes_of(draw)
    sizes, args = (s.U, s.T, s.W), attended(draw, s).values()
    devices = {"device": DeviceArgument("meta")}, {"device": DeviceArgument(attempt.device)}
    keeps_the_device(attempt, "window_mask", sizes, sizes, "it is asked for", devices)
    keeps_the_device(attempt, "local_attention", on_meta(args), args)


def attends_to_one_key(attempt, draw):
    """Where all keys are the same."""
    q, k, v = alike(draw, 7), alike(draw, 7), alike(draw, 7)
    shares_out(lambda factor, n: attempt.call("local_attention", factor**2 * q[:n], k[:n], v[:n], 4).output)


COUNTS_IF = {"local_attention": attends_to_one_key}
