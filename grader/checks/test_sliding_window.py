"""Hidden checks of the sliding window.

They ask for a band that ends in the lower right corner, and for attention with this mask.
"""

import torch

from manyheads.checks import CheckFailed, assert_finite, assert_shape, expect
from manyheads.checks.asserts import TOLERANCE

from . import _functions as shared
from ._conditions import of_queries_keys_values
from ._modules import Layers, Sizes, asked_of, changed

DEEP = -40.0  # scores are lowered to this number: a finite fill must lie far below


# There are fewer queries (U) than keys (T), and the window (W) is smaller than both. Even a third
# of the window is two keys.
SIZES = Sizes(B=[5], H=[3], T=[11, 12], U=[9], W=[6], hd=[7], hv=[13])
layer = Layers(SIZES)


def band(queries, keys, window):
    """Return the oracle's mask: whether each query sees each key."""
    mask = []
    for end in range(keys - queries, keys):
        mask.append([0 <= end - key < window for key in range(keys)])
    return torch.tensor(mask)


def qkv(draw, s, queries, keys, *leading):
    """Return arguments with these leading dimensions, by default with one."""
    return [
        draw(*(leading or (s.B,)), *size) for size in ((queries, s.hd), (keys, s.hd), (keys, s.hv))
    ]


def both_of(draw):
    s = SIZES(draw)
    arguments = dict(zip(("q", "k", "v", "window"), (*qkv(draw, s, s.U, s.T), s.W), strict=True))
    return {"window_mask": {"T_q": s.U, "T_k": s.T, "window": s.W}, "local_attention": arguments}


masks_of = shared.restricted(both_of, "window_mask")
calls_of = shared.restricted(both_of, "local_attention")


def deep_qkv(draw, s, queries, keys, loud=0):
    """Return arguments whose scores lie around DEEP.

    A constant channel of the queries meets one of the keys.

    Args:
        loud: the scores of the first `loud` keys lie around −DEEP instead.
    """
    q, k, v = qkv(draw, s, queries, keys)
    q[..., 0], k[..., 0] = s.hd**0.5, DEEP
    k[:, :loud, 0] = -DEEP
    return q, k, v


def assert_band(attempt, queries, keys, window):
    """Fail unless the mask of these sizes is right. The evidence names the mistake."""
    mask = attempt.call("window_mask", queries, keys, window).output
    label = f"{queries} queries, {keys} keys and a window of {window}"
    assert_shape(mask, (queries, keys), f"the mask for {label}")
    actual, expected, square = (
        shared.seen_in(mask),
        band(queries, keys, window),
        torch.ones(queries, keys, dtype=torch.bool),
    )
    if torch.equal(actual, expected):
        return
    stands, in_the_corner = keys - queries, torch.equal(actual, square.tril().triu(1 - window))
    expect(not torch.equal(actual, ~expected), "True and False are swapped: True means may look")
    expect(not in_the_corner, f"for {label} the band begins in the upper left corner")
    sees_itself, ahead, behind = (
        actual.diagonal(stands).all(),
        actual.triu(stands + 1).any(),
        actual.tril(stands - window).any(),
    )
    expect(
        sees_itself,
        f"for {label} a query does not see the key it stands at; the last query stands at the"
        " last key",
    )
    expect(not ahead, f"for {label} a query sees a key of its future")
    expect(not behind, f"for {label} a query sees a key that lies {window} or more before it")
    raise CheckFailed(
        f"for {label} a query does not see all of itself and the {window - 1} keys before it"
    )


test_shapes = asked_of(both_of, shared.shapes)
test_mask_is_boolean = asked_of(masks_of, shared.mask_is_boolean)


@layer.values(0.75, "Two conditions for each pair: not ahead of the query, not too far behind.")
def test_window_mask(attempt, draw, s):
    """lets every token see itself and the window − 1 tokens before it"""
    for size, window in ((s.T, s.W), (s.U, s.W + 2), (draw.integer(40, 64), draw.integer(20, 30))):
        assert_band(attempt, size, size, window)


@layer.values(0.75, "At which position does query 0 stand, when there are more keys than queries?")
def test_fewer_queries(attempt, draw, s):
    """stands the last query at the last key"""
    keys = draw.integer(40, 64)
    for sizes in (
        (s.U, s.T, s.W),
        (2, s.T, s.W + 1),
        (draw.integer(20, 30), keys, s.U),
        (1, s.T, s.W - 1),
    ):
        assert_band(attempt, *sizes)


@layer.values(0.25, "With a window of 1 a token sees itself; a wide one hides the future alone.")
def test_narrow_and_wide(attempt, s):
    """is right for a window of 1, and for one as wide as the text or wider"""
    for sizes in ((s.T, s.T, 1), (s.U, s.T, 1), (s.T, s.T, s.T), (s.U, s.T, s.T + 5), (1, 1, 1)):
        assert_band(attempt, *sizes)


@layer.hygiene(0.5, "Which two calls make no sense? Look at the numbers before you build anything.")
def test_refuses(attempt, s):
    """refuses a window below 1, and more queries than keys"""
    assert_shape(attempt.call("window_mask", s.U, s.T, s.W), (s.U, s.T), "the mask")
    for queries, keys, window in ((s.T, s.T, 0), (s.U, s.T, -2), (s.T, s.U, s.W)):
        label = (
            f"a window of {window}"
            if window < 1
            else f"a mask for {queries} queries and {keys} keys"
        )
        shared.expect_refused(attempt.call("window_mask", queries, keys, window), label, "numbers")


@layer.finite(0.25, "Is there a row that sees no key, or a zero that meets an infinity?")
def test_finite(attempt, draw, s):
    """gives answers without NaN"""
    for queries in (s.T, s.U):
        assert_finite(
            attempt.call("local_attention", *qkv(draw, s, queries, s.T), s.W), "the answers"
        )


@layer.causality(0.5, "Edit one key and its value: which answers may move?")
def test_reach(attempt, draw, s):
    """uses nothing ahead, and nothing that slid out of the window"""
    q, k, v = qkv(draw, s, s.U, s.T)
    baseline = attempt.call("local_attention", q, k, v, s.W)
    assert_shape(baseline, (s.B, s.U, s.hv), "the answers")
    visible = band(s.U, s.T, s.W)
    for key in (s.T - 2, s.T - s.W - 2):
        new_k, new_v = k.clone(), v.clone()
        new_k[:, key], new_v[:, key] = draw(s.B, s.hd, scale=2.0), draw(s.B, s.hv, scale=2.0)
        after = attempt.call("local_attention", q, new_k, new_v, s.W)
        assert_shape(after, (s.B, s.U, s.hv), "the answers")
        moved = (baseline.output - after.output).abs().amax(
            (0, -1)
        ) > TOLERANCE * baseline.output.abs().max()
        for i, (has_moved, may_see) in enumerate(
            zip(moved.tolist(), visible[:, key].tolist(), strict=True)
        ):
            ago, query, key_label = (
                s.T - s.U + i - key,
                f"query {i} of {s.U}",
                f"key {key} of {s.T}, which",
            )
            distance = "ahead of it" if ago < 0 else f"{ago} before it, and the window is {s.W}"
            expect(not has_moved or may_see, f"{query} depends on {key_label} lies {distance}")
            expect(
                has_moved or not may_see, f"{query} does not depend on {key_label} it should see"
            )


@layer.values(0.75, "Scores over √head_dim, hide, share out, mix: in this order.")
def test_local_attention(agree, draw, s):
    """answers each query from what it sees"""
    wide, even = changed(s, hd=10), changed(s, hv=s.hd)
    calls = {
        "the answers": (*qkv(draw, s, s.T, s.T), s.W),
        "the answers to low scores": (*deep_qkv(draw, s, s.T, s.T), s.W + 1),
        "the answers beside louder keys that slid out": (
            *deep_qkv(draw, s, 2, s.T, s.T - s.W - 2),
            s.W,
        ),
        "the answers under a window of 1": (*qkv(draw, s, s.U, s.U), 1),
        "the answers under a window wider than the text": (*qkv(draw, s, s.U, s.U), s.T + 5),
        "the answers of wider heads in a long text": (*qkv(draw, wide, 53, 53), 37),
        "the answers of as many tokens as channels": (*qkv(draw, even, s.hd, s.hd, s.hd), s.W),
    }
    agree("local_attention", calls)


@layer.values(
    0.5, "While a model writes, the newest tokens ask. Where do they stand among the keys?"
)
def test_decoding(agree, draw, s):
    """answers the last queries as if the first had asked too"""
    calls = {
        f"for one query and {s.T} keys, the output of local_attention": (
            *qkv(draw, s, 1, s.T),
            s.W + 2,
        ),
        f"for {s.U} queries and {s.T} keys, the output of local_attention": (
            *qkv(draw, s, s.U, s.T),
            s.W,
        ),
        "for 47 keys and two leading dimensions, the output": (*qkv(draw, s, s.T, 47, 2, s.H), s.U),
    }
    agree("local_attention", calls)


@layer.causality(0.25, "Count axes from the end: the last is −1, the one before it −2.")
def test_leading_dimensions(attempt, draw, s):
    """gives a sequence in a batch the same as alone"""
    args = qkv(draw, s, s.T, s.T, s.B, s.H)
    shared.expect_same_alone(attempt, "local_attention", args, (s.W,), (s.B, s.H, s.T, s.hv))


test_gradients = asked_of(
    calls_of, shared.gradients, "lets the right gradients through to q, k and v"
)
test_leaves_its_arguments = asked_of(calls_of, shared.leaves_its_arguments)
test_dtype = asked_of(calls_of, shared.dtype)
test_device = asked_of(
    both_of,
    shared.device,
    "makes the mask on the device that is asked for",
    "The mask belongs where the scores are.",
)

PRECONDITIONS = {"local_attention": of_queries_keys_values("local_attention", 9, tokens=14)}
