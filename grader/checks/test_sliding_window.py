"""Hidden checks of the sliding window.

They ask for a band that ends in the lower right corner, and for attention with this mask.
"""

import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    assert_finite,
    assert_matches,
    assert_shape,
    changed_positions,
    check,
    expect,
    function_contract,
)
from manyheads.checks.asserts import TOLERANCE

from ._conditions import of_queries_keys_values
from ._functions import (
    expect_boolean_mask,
    expect_refused,
    expect_same_alone,
    expect_shapes,
    seen_in,
)

LOW_SCORE = -40.0  # scores are lowered to this number: a finite fill must lie far below
# There are fewer queries (U) than keys (T), and the window (W) is smaller than both. Even a third
# of the window is two keys.
SIZES = {"B": [5], "H": [3], "T": [11, 12], "U": [9], "W": [6], "hd": [7], "hv": [13]}


def band(queries, keys, window):
    """Return whether each query sees each key: (queries, keys)."""
    mask = []
    for end in range(keys - queries, keys):
        mask.append([0 <= end - key < window for key in range(keys)])
    return torch.tensor(mask)


def attention_oracle(q, k, v, window):
    """Return the values weighed by exponentials of visible scores: no −inf, no softmax."""
    scores = torch.einsum("...qc,...kc->...qk", q, k) * q.shape[-1] ** -0.5
    exponentials = scores.exp() * band(q.shape[-2], k.shape[-2], window)
    return exponentials @ v / exponentials.sum(-1, keepdim=True)


def qkv(draw, s, queries, keys, *leading, hd=None, hv=None):
    """Return q, k and v with these leading dimensions, by default with one."""
    leading = leading or (s.B,)
    shapes = ((queries, hd or s.hd), (keys, hd or s.hd), (keys, hv or s.hv))
    return [draw(*leading, *shape) for shape in shapes]


def qkv_of_low_scores(draw, s, queries, keys, loud=0):
    """Return q, k and v whose scores lie around LOW_SCORE.

    A constant channel of the queries meets one of the keys.

    Args:
        loud: the scores of the first `loud` keys lie around −LOW_SCORE instead.
    """
    q, k, v = qkv(draw, s, queries, keys)
    q[..., 0], k[..., 0] = s.hd**0.5, LOW_SCORE
    k[:, :loud, 0] = -LOW_SCORE
    return q, k, v


def arguments(draw):
    """Return arguments of both functions by name."""
    s = draw.sizes(**SIZES)
    q, k, v = qkv(draw, s, s.U, s.T)
    return {
        "window_mask": {"T_q": s.U, "T_k": s.T, "window": s.W},
        "local_attention": {"q": q, "k": k, "v": v, "window": s.W},
    }


def attention_arguments(draw):
    """Return the same for local_attention alone."""
    return {"local_attention": arguments(draw)["local_attention"]}


@check(points=0.25, layer="shape")
def test_shapes(attempt, reference, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    expect_shapes(attempt, reference, arguments(draw))


@check(
    points=0.25,
    layer="hygiene",
    hint="What is the dtype of a comparison, or of torch.ones without dtype=?",
)
def test_mask_is_boolean(attempt, draw):
    """makes a boolean mask"""
    args = arguments(draw)["window_mask"].values()
    expect_boolean_mask("window_mask", attempt.window_mask(*args))


@check(
    points=0.75,
    layer="values",
    hint="Two conditions for each pair: not ahead of the query, not too far behind.",
)
def test_window_mask(attempt, draw, sizes):
    """lets every token see itself and the window − 1 tokens before it"""
    T, U, W = sizes.T, sizes.U, sizes.W
    for size, window in ((T, W), (U, W + 2), (draw.integer(40, 64), draw.integer(20, 30))):
        expect_band(attempt, size, size, window)


@check(
    points=0.75,
    layer="values",
    hint="At which position does query 0 stand, when there are more keys than queries?",
)
def test_fewer_queries(attempt, draw, sizes):
    """stands the last query at the last key"""
    T, U, W, keys = sizes.T, sizes.U, sizes.W, draw.integer(40, 64)
    for case in ((U, T, W), (2, T, W + 1), (draw.integer(20, 30), keys, U), (1, T, W - 1)):
        expect_band(attempt, *case)


@check(
    points=0.25,
    layer="values",
    hint="With a window of 1 a token sees itself; a wide one hides the future alone.",
)
def test_narrow_and_wide(attempt, sizes):
    """is right for a window of 1, and for one as wide as the text or wider"""
    T, U = sizes.T, sizes.U
    for case in ((T, T, 1), (U, T, 1), (T, T, T), (U, T, T + 5), (1, 1, 1)):
        expect_band(attempt, *case)


def expect_band(attempt, queries, keys, window):
    """Fail unless the mask of these sizes is right. The evidence names the mistake."""
    mask = attempt.window_mask(queries, keys, window).output
    label = Evidence("{} queries, {} keys and a window of {}", queries, keys, window)
    assert_shape(mask, (queries, keys), Evidence("the mask for {}", label))
    actual, expected = seen_in(mask), band(queries, keys, window)
    if torch.equal(actual, expected):
        return
    is_inverted = torch.equal(actual, ~expected)
    upper_left = torch.ones_like(expected).tril().triu(1 - window)
    ahead = keys - queries  # query 0 stands at this key
    own_keys = actual.diagonal(ahead)
    expect(not is_inverted, "True and False are swapped: True means may look")
    is_upper_left = torch.equal(actual, upper_left)
    expect(not is_upper_left, Evidence("for {} the band begins in the upper left corner", label))
    evidence = Evidence(
        "for {} a query does not see the key it stands at; the last query stands at the last key",
        label,
    )
    expect(own_keys.all(), evidence)
    sees_future = actual.triu(ahead + 1).any()
    expect(not sees_future, Evidence("for {} a query sees a key of its future", label))
    sees_behind = actual.tril(ahead - window).any()
    evidence = Evidence("for {} a query sees a key that lies {} or more before it", label, window)
    expect(not sees_behind, evidence)
    raise CheckFailed(
        Evidence(
            "for {} a query does not see all of itself and the {} keys before it", label, window - 1
        )
    )


@check(
    points=0.5,
    layer="hygiene",
    hint="Which two calls make no sense? Look at the numbers before you build anything.",
)
def test_refuses(attempt, sizes):
    """refuses a window below 1, and more queries than keys"""
    T, U, W = sizes.T, sizes.U, sizes.W
    assert_shape(attempt.window_mask(U, T, W), (U, T), "the mask")
    for queries, keys, window, label in (
        (T, T, 0, "a window of 0"),
        (U, T, -2, "a window of -2"),
        (T, U, W, Evidence("a mask for {} queries and {} keys", T, U)),
    ):
        expect_refused(attempt.window_mask(queries, keys, window), label, "numbers")


@check(
    points=0.25,
    layer="finite",
    hint="Is there a row that sees no key, or a zero that meets an infinity?",
)
def test_finite(attempt, draw, sizes):
    """gives answers without NaN"""
    for queries in (sizes.T, sizes.U):
        inputs = qkv(draw, sizes, queries, sizes.T)
        assert_finite(attempt.local_attention(*inputs, sizes.W), "the answers")


@check(points=0.5, layer="causality", hint="Edit one key and its value: which answers may move?")
def test_reach(attempt, draw, sizes):
    """uses nothing ahead, and nothing that slid out of the window"""
    B, _, T, U, W, hd, hv = vars(sizes).values()
    q, k, v = qkv(draw, sizes, U, T)
    answer = attempt.local_attention(q, k, v, W)
    assert_shape(answer, (B, U, hv), "the answers")
    visible = band(U, T, W)
    for key in (T - 2, T - W - 2):
        new_k, new_v = k.clone(), v.clone()
        new_k[:, key], new_v[:, key] = draw(B, hd, scale=2.0), draw(B, hv, scale=2.0)
        edited = attempt.local_attention(q, new_k, new_v, W)
        assert_shape(edited, (B, U, hv), "the answers")
        changed = changed_positions(answer, edited, axes=1, tolerance=TOLERANCE)
        for query in range(U):
            ago = T - U + query - key
            distance = (
                "ahead of it" if ago < 0 else Evidence("{} before it, and the window is {}", ago, W)
            )
            pair = Evidence("key {} of {}, which", key, T)
            depends, may_see = query in changed, visible[query, key]
            evidence = Evidence("query {} of {} depends on {} lies {}", query, U, pair, distance)
            expect(may_see or not depends, evidence)
            evidence = Evidence(
                "query {} of {} does not depend on {} it should see", query, U, pair
            )
            expect(depends or not may_see, evidence)


@check(
    points=0.75, layer="values", hint="Scores over √head_dim, hide, share out, mix: in this order."
)
def test_local_attention(attempt, draw, sizes):
    """answers each query from what it sees"""
    s, T, U, W, hd = sizes, sizes.T, sizes.U, sizes.W, sizes.hd
    cases = {
        "the answers": (*qkv(draw, s, T, T), W),
        "the answers to low scores": (*qkv_of_low_scores(draw, s, T, T), W + 1),
        "the answers beside louder keys that slid out": (
            *qkv_of_low_scores(draw, s, 2, T, T - W - 2),
            W,
        ),
        "the answers under a window of 1": (*qkv(draw, s, U, U), 1),
        "the answers under a window wider than the text": (*qkv(draw, s, U, U), T + 5),
        "the answers of wider heads in a long text": (*qkv(draw, s, 53, 53, hd=10), 37),
        "the answers of as many tokens as channels": (*qkv(draw, s, hd, hd, hd, hv=hd), W),
    }
    for label, args in cases.items():
        assert_matches(attempt.local_attention(*args), attention_oracle(*args), label)


@check(
    points=0.5,
    layer="values",
    hint="While a model writes, the newest tokens ask. Where do they stand among the keys?",
)
def test_decoding(attempt, draw, sizes):
    """answers the last queries as if the first had asked too"""
    s, H, T, U, W = sizes, sizes.H, sizes.T, sizes.U, sizes.W
    cases = {
        Evidence("for one query and {} keys, the output of local_attention", T): (
            *qkv(draw, s, 1, T),
            W + 2,
        ),
        Evidence("for {} queries and {} keys, the output of local_attention", U, T): (
            *qkv(draw, s, U, T),
            W,
        ),
        "for 47 keys and two leading dimensions, the output": (*qkv(draw, s, T, 47, 2, H), U),
    }
    for label, args in cases.items():
        assert_matches(attempt.local_attention(*args), attention_oracle(*args), label)


@check(
    points=0.25,
    layer="causality",
    hint="Count axes from the end: the last is −1, the one before it −2.",
)
def test_leading_dimensions(attempt, draw, sizes):
    """gives a sequence in a batch the same as alone"""
    B, H, T, W, hv = sizes.B, sizes.H, sizes.T, sizes.W, sizes.hv
    inputs = qkv(draw, sizes, T, T, B, H)
    expect_same_alone(attempt, "local_attention", inputs, (W,), (B, H, T, hv))


CONTRACT = [
    *function_contract(
        attention_arguments,
        points=0.25,
        gradients=("lets the right gradients through to q, k and v", ""),
        leaves_its_arguments="",
        dtype="",
    ),
    *function_contract(
        arguments,
        points=0.25,
        device=(
            "makes the mask on the device that is asked for",
            "The mask belongs where the scores are.",
        ),
    ),
]

PRECONDITIONS = {"local_attention": of_queries_keys_values("local_attention", 9, tokens=14)}
