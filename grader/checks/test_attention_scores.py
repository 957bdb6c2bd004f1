"""Hidden checks of the attention scores.

The functions compare, share out and mix, with any number of leading dimensions.
"""

import torch

from manyheads.checks import assert_matches, assert_shape, expect
from manyheads.checks.asserts import TOLERANCE

from ._conditions import of_queries_keys_values, of_scores, of_tokens
from ._functions import (
    device,
    dtype,
    expect_same_alone,
    expect_unscaled,
    gradients,
    leaves_its_arguments,
    same,
    shapes,
)
from ._modules import Layers, Sizes, asked_of

SIZES = Sizes(B=[5], H=[3], Tq=(9, 12), Tk=(9, 12), hd=[7], hv=(13, 15))
LARGE = Sizes(B=[5, 7], Tq=(40, 64), Tk=(40, 64), hd=(11, 13), hv=(17, 25))
layer = Layers(SIZES)


def agree_when_large(agree, draw, name):
    """Fail unless a call with many tokens gives what the reference gives."""
    args = list(calls_of(draw, LARGE(draw))[name].values())
    agree(name, {f"for {args[0].shape[-2]} tokens, the output of {name}": args})


def calls_of(draw, s=None):
    """Return every function with arguments for it by name, one leading dimension each."""
    s = s or SIZES(draw)
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


test_shapes = asked_of(calls_of, shapes)


@layer.causality(0.5, "Count axes from the end: the last is −1, the one before it −2.")
def test_leading_dimensions(attempt, draw, s):
    """gives a sequence in a batch the same as alone"""
    qkv = [draw(s.B, s.H, s.Tq, s.hd) for _ in range(3)]
    calls = {
        "simplified_attention": [draw(2, s.B, s.H, s.Tq, s.hd, scale=0.7)],
        "attention_scores": qkv[:2],
        "attention_weights": [draw(s.B, s.H, s.Tq, s.Tk)],
        "attend": qkv,
    }
    for name, args in calls.items():
        width = s.Tq if name == "attention_scores" else args[-1].shape[-1]
        at = tuple(size - 1 for size in args[0].shape[:-2])
        expect_same_alone(attempt, name, args, (), (*args[0].shape[:-1], width), at, f"at {at}")


@layer.values(0.75, "Three steps, two matrix products. What joins the tokens in each?")
def test_simplified_attention(agree, draw, s):
    """mixes tokens by softmax(x xᵀ)"""
    x = draw(s.Tq, s.hd, scale=0.7)
    table = x @ x.mT
    later = torch.ones_like(table).triu(1).bool()
    guesses = {
        "the scores are scaled: this bare form asks for no scale": (
            torch.softmax(table / s.hd**0.5, -1) @ x
        ),
        "later tokens are masked: nothing is masked here": (
            torch.softmax(table.masked_fill(later, -torch.inf), -1) @ x
        ),
        "the shares of each key sum to 1, not those of each query": torch.softmax(table, -1).mT @ x,
    }
    agree("simplified_attention", {"": (x,)}, guesses)
    agree_when_large(agree, draw, "simplified_attention")


@layer.values(0.75, "How many products were summed to make one score?")
def test_attention_scores(attempt, reference, agree, draw, s):
    """divides q kᵀ by √head_dim"""
    q, k = draw(s.B, s.Tq, s.hd), draw(s.B, s.Tk, s.hd)
    got, want = (
        attempt.call("attention_scores", q, k).output,
        reference.call("attention_scores", q, k).output,
    )
    expect_unscaled(got, want)
    assert_matches(got, want, "the scores")
    # with these sizes a product without the transpose fits, and so does one with .T
    q, k = draw(s.hd, s.Tq, s.hd), draw(s.hd, s.hd, s.hd)
    agree("attention_scores", {"with as many keys and tables as channels, the scores": (q, k)})
    agree_when_large(agree, draw, "attention_scores")


@layer.values(0.75, "Whose shares must sum to 1: those of a query or those of a key?")
def test_attention_weights(attempt, reference, agree, draw, s):
    """shares out each query's attention over the keys"""
    scores = draw(s.B, s.Tq, s.Tk, scale=2.0)
    got, want = (
        attempt.call("attention_weights", scores),
        reference.call("attention_weights", scores),
    )
    w = got.output
    assert_shape(w, want.output.shape, "the weights")
    expect(
        not (w < -TOLERANCE).any(),
        f"{int((w < -TOLERANCE).sum())} of {w.numel()} weights are negative",
    )
    sums = {
        "each key's weights": w.sum(-2),
        "the weights of a whole table": w.sum((-2, -1)),
        "all weights": w.sum(),
    }
    for label, total in sums.items():
        expect(not same(total, torch.ones_like(total)), f"{label} sum to 1: each query's should")
    expect(same(w.sum(-1), torch.ones_like(w[..., 0])), "the weights of one query do not sum to 1")
    assert_matches(got, want, "the weights")
    agree_when_large(agree, draw, "attention_weights")


@layer.values(0.75, "Compare with the keys, carry home the values.")
def test_attend(reference, agree, draw, s):
    """mixes the values by the weights"""
    q, k, v = (draw(s.B, s.Tq, s.hd) for _ in range(3))
    guesses = {
        "the keys are mixed, not the values": reference.call("attend", q, k, k).output,
        "the queries are mixed, not the values": reference.call("attend", q, k, q).output,
        "the plain mean of the values comes out": v.mean(-2, keepdim=True).expand_as(v),
    }
    agree("attend", {"": (q, k, v)}, guesses)
    q, k, v = draw(s.B, s.Tq, s.hd), draw(s.B, s.Tk, s.hd), draw(s.B, s.Tk, s.hv)
    agree("attend", {"with keys of another number": (q, k, v)})
    agree_when_large(agree, draw, "attend")


@layer.values(0.25)
def test_single_token(agree, draw, s):
    """works where there is one token, one query or one key"""
    token, keys, values = draw(s.B, 1, s.hd), draw(s.B, s.Tk, s.hd), draw(s.B, s.Tk, s.hv)
    agree("simplified_attention", {"the output for a single token": (token,)})
    agree("attend", {"the output for a single query": (token, keys, values)})
    agree("attend", {"the output for a single key": (keys, token, values[:, :1].clone())})


test_gradients = asked_of(calls_of, gradients)
test_leaves_its_arguments = asked_of(calls_of, leaves_its_arguments)
test_dtype = asked_of(calls_of, dtype)
test_device = asked_of(calls_of, device)


PRECONDITIONS = {
    "simplified_attention": of_tokens("simplified_attention"),
    "attention_weights": of_scores("attention_weights"),
    "attend": of_queries_keys_values("attend"),
}
