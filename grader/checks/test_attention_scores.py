"""Hidden checks of the attention scores.

The functions compare, share out and mix, with any number of leading dimensions.
"""

import torch

from manyheads.checks import (
    Evidence,
    assert_differs,
    assert_matches,
    assert_shape,
    check,
    expect,
    function_contract,
)
from manyheads.checks.asserts import TOLERANCE

from ._conditions import of_queries_keys_values, of_scores, of_tokens
from ._functions import expect_same_alone, expect_shapes, expect_unscaled

SIZES = {"B": [5], "H": [3], "Tq": (9, 12), "Tk": (9, 12), "hd": [7], "hv": (13, 15)}
LARGE = {"B": [5, 7], "Tq": (40, 64), "Tk": (40, 64), "hd": (11, 13), "hv": (17, 25)}


def simplified_oracle(x):
    return weights_oracle(x @ x.mT) @ x


def scores_oracle(q, k):
    return torch.einsum("...qc,...kc->...qk", q, k) * q.shape[-1] ** -0.5


def weights_oracle(scores):
    """Return the exponentials of each row over their sum: no softmax."""
    exponentials = scores.exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def attend_oracle(q, k, v):
    return weights_oracle(scores_oracle(q, k)) @ v


ORACLES = {
    "simplified_attention": simplified_oracle,
    "attention_scores": scores_oracle,
    "attention_weights": weights_oracle,
    "attend": attend_oracle,
}


def arguments(draw, choices=SIZES):
    """Return arguments of every function by name, with one leading dimension."""
    s = draw.sizes(**choices)
    return {
        "simplified_attention": {"x": draw(s.B, s.Tq, s.hd, scale=0.7)},
        "attention_scores": {"q": draw(s.B, s.Tq, s.hd), "k": draw(s.B, s.Tk, s.hd)},
        "attention_weights": {"scores": draw(s.B, s.Tq, s.Tk)},
        "attend": {
            "q": draw(s.B, s.Tq, s.hd),
            "k": draw(s.B, s.Tk, s.hd),
            "v": draw(s.B, s.Tk, s.hv),
        },
    }


def expect_right(attempt, name, label, *args):
    """Fail unless the function gives what its oracle gives."""
    assert_matches(attempt.call(name, *args), ORACLES[name](*args), label)


def expect_right_when_large(attempt, draw, name):
    """Fail unless a call with many tokens gives what the oracle gives."""
    args = [*arguments(draw, LARGE)[name].values()]
    label = Evidence("for {} tokens, the output of {}", args[0].shape[-2], name)
    expect_right(attempt, name, label, *args)


@check(points=0.25, layer="shape")
def test_shapes(attempt, reference, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    expect_shapes(attempt, reference, arguments(draw))


@check(
    points=0.5,
    layer="causality",
    hint="Count axes from the end: the last is −1, the one before it −2.",
)
def test_leading_dimensions(attempt, draw, sizes):
    """gives a sequence in a batch the same as alone"""
    B, H, Tq, Tk, hd, _ = vars(sizes).values()
    qkv = [draw(B, H, Tq, hd) for _ in range(3)]
    calls = {
        "simplified_attention": [draw(2, B, H, Tq, hd, scale=0.7)],
        "attention_scores": qkv[:2],
        "attention_weights": [draw(B, H, Tq, Tk)],
        "attend": qkv,
    }
    for name, args in calls.items():
        width = Tq if name == "attention_scores" else args[-1].shape[-1]
        last_index = tuple(size - 1 for size in args[0].shape[:-2])
        shape = (*args[0].shape[:-1], width)
        expect_same_alone(attempt, name, args, (), shape, last_index, Evidence("at {}", last_index))


@check(
    points=0.75,
    layer="values",
    hint="Three steps, two matrix products. What joins the tokens in each?",
)
def test_simplified_attention(attempt, draw, sizes):
    """mixes tokens by softmax(x xᵀ)"""
    x = draw(sizes.Tq, sizes.hd, scale=0.7)
    table = x @ x.mT
    later = torch.ones_like(table).triu(1).bool()
    y = attempt.simplified_attention(x)
    scaled = weights_oracle(table / sizes.hd**0.5) @ x
    masked = weights_oracle(table.masked_fill(later, -torch.inf)) @ x
    by_key = weights_oracle(table).mT @ x
    assert_differs(y, scaled, "the scores are scaled: this bare form asks for no scale")
    assert_differs(y, masked, "later tokens are masked: nothing is masked here")
    assert_differs(y, by_key, "the shares of each key sum to 1, not those of each query")
    assert_matches(y, simplified_oracle(x))
    expect_right_when_large(attempt, draw, "simplified_attention")


@check(points=0.75, layer="values", hint="How many products were summed to make one score?")
def test_attention_scores(attempt, draw, sizes):
    """divides q kᵀ by √head_dim"""
    B, _, Tq, Tk, hd, _ = vars(sizes).values()
    q, k = draw(B, Tq, hd), draw(B, Tk, hd)
    scores = attempt.attention_scores(q, k)
    expect_unscaled(scores, scores_oracle(q, k))
    assert_matches(scores, scores_oracle(q, k), "the scores")
    # with these sizes a product without the transpose fits, and so does one with .T
    label = "with as many keys and tables as channels, the scores"
    expect_right(attempt, "attention_scores", label, draw(hd, Tq, hd), draw(hd, hd, hd))
    expect_right_when_large(attempt, draw, "attention_scores")


@check(
    points=0.75,
    layer="values",
    hint="Whose shares must sum to 1: those of a query or those of a key?",
)
def test_attention_weights(attempt, draw, sizes):
    """shares out each query's attention over the keys"""
    scores = draw(sizes.B, sizes.Tq, sizes.Tk, scale=2.0)
    w = attempt.attention_weights(scores).output
    assert_shape(w, scores.shape, "the weights")
    negative = w < -TOLERANCE
    expect(
        not negative.any(),
        Evidence("{} of {} weights are negative", int(negative.sum()), w.numel()),
    )
    sums = {
        "each key's weights": w.sum(-2),
        "the weights of a whole table": w.sum((-2, -1)),
        "all weights": w.sum(),
    }
    for label, total in sums.items():
        assert_differs(
            total, torch.ones_like(total), Evidence("{} sum to 1: each query's should", label)
        )
    are_shares = ((w.sum(-1) - 1).abs() <= TOLERANCE).all()
    expect(are_shares, "the weights of one query do not sum to 1")
    assert_matches(w, weights_oracle(scores), "the weights")
    expect_right_when_large(attempt, draw, "attention_weights")


@check(points=0.75, layer="values", hint="Compare with the keys, carry home the values.")
def test_attend(attempt, draw, sizes):
    """mixes the values by the weights"""
    B, _, Tq, Tk, hd, hv = vars(sizes).values()
    q, k, v = (draw(B, Tq, hd) for _ in range(3))
    y = attempt.attend(q, k, v)
    mean = v.mean(-2, keepdim=True).expand_as(v)
    assert_differs(y, attend_oracle(q, k, k), "the keys are mixed, not the values")
    assert_differs(y, attend_oracle(q, k, q), "the queries are mixed, not the values")
    assert_differs(y, mean, "the plain mean of the values comes out")
    assert_matches(y, attend_oracle(q, k, v))
    qkv = draw(B, Tq, hd), draw(B, Tk, hd), draw(B, Tk, hv)
    expect_right(attempt, "attend", "with keys of another number", *qkv)
    expect_right_when_large(attempt, draw, "attend")


@check(points=0.25, layer="values")
def test_single_token(attempt, draw, sizes):
    """works where there is one token, one query or one key"""
    B, _, _, Tk, hd, hv = vars(sizes).values()
    token, keys, values = draw(B, 1, hd), draw(B, Tk, hd), draw(B, Tk, hv)
    expect_right(attempt, "simplified_attention", "the output for a single token", token)
    expect_right(attempt, "attend", "the output for a single query", token, keys, values)
    one_value = values[:, :1].clone()
    expect_right(attempt, "attend", "the output for a single key", keys, token, one_value)


CONTRACT = function_contract(arguments, points=0.25)

PRECONDITIONS = {
    "simplified_attention": of_tokens("simplified_attention"),
    "attention_weights": of_scores("attention_weights"),
    "attend": of_queries_keys_values("attend"),
}
