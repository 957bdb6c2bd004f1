"""Hidden checks of one causal head with three separate projections."""

import torch
from torch.nn.functional import linear

from manyheads.checks import (
    Evidence,
    Sizes,
    assert_finite,
    assert_matches,
    check,
    module_contract,
)

from . import _separate_qkv as shared
from ._conditions import of_module

FAMILIAR = [
    *((B, T, 10, 14) for B in (1, 2, 4, 8) for T in (2, 3, 4, 5, 6) if B != T),
    *((3, 5, 7, d_out) for d_out in (2, 4, 8, 64)),
    *((3, 5, d_in, 7) for d_in in (2, 4, 8, 64)),
]
SIZES = Sizes(B=[5, 7], T=[9, 11], C=[13, 14], d_out=[10, 15], block=[17, 19], nh=lambda *_: 1)
LARGE = Sizes(B=(2, 3), T=(40, 60), C=(17, 25), d_out=(11, 14), block=(61, 64))
SQUARE = Sizes(B=[5, 7], block=[11, 13], C=[14, 15], nh=lambda *_: 1)
MODULE = shared.SeparateProjections("CausalAttention", SIZES)


def attention_oracle(x, weights):
    """Return the answer of a head whose queries see nothing but their past: no mask, no −inf."""
    q, k, v = (
        linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias")) for name in shared.LAYERS
    )
    scores = q @ k.mT / q.shape[-1] ** 0.5
    shares = torch.zeros_like(scores)
    for query in range(x.shape[1]):
        past = slice(query + 1)
        shares[:, query, past] = torch.softmax(scores[:, query, past], dim=-1)
    return shares @ v


def head(implementation, s, weights, qkv_bias=True):
    """Return the module of these sizes with these weights."""
    module = implementation.CausalAttention(s.C, s.d_out, s.block, qkv_bias=qkv_bias)
    return module.with_parameters(weights)


@check(
    points=0.25,
    layer="shape",
    hint="Take B and T from x.shape, and let -1 or d_out stand for the rest.",
)
def test_shape(attempt, draw, sizes):
    """gives (B, T, d_out), for any batch and down to a single token"""
    weights = MODULE.weights(draw, sizes, bias=False)
    for B, T in ((sizes.B, sizes.block), (1, 1)):
        x = draw(B, T, sizes.C)
        answer = attempt.CausalAttention(sizes.C, sizes.d_out, T).with_parameters(weights)(x)
        build = attempt.with_options(random=True).CausalAttention
        shape, case = (B, T, sizes.d_out), Evidence("B = {} with T = {}", B, T)
        shared.expect_shape(answer, shape, case, FAMILIAR, build, draw)


@check(
    points=0.25,
    layer="shape",
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw, sizes, weights):
    """takes fewer tokens than the context holds"""
    x = draw(sizes.B, sizes.block, sizes.C)
    shared.expect_shorter_texts(head(attempt, sizes, weights), x, sizes.T, sizes.d_out)


@check(
    points=0.25, layer="finite", hint="Can a row of the mask be hidden whole? And what is 0 · ∞?"
)
def test_finite(attempt, sizes, weights, x):
    """gives no NaN"""
    assert_finite(head(attempt, sizes, weights)(x))


@check(
    points=0.25,
    layer="causality",
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the"
    " softmax?",
)
def test_future(attempt, draw, sizes):
    """keeps the past as it was when the future is edited"""
    weights, (x,) = MODULE.low_scores(draw, sizes)
    for start in (1, sizes.T - 2):
        edited = x.clone()
        edited[:, start:, 1:] = 2 * draw(sizes.B, sizes.T - start, sizes.C - 1)
        module = head(attempt, sizes, weights)
        shared.expect_past_kept(module, x, edited, start, sizes.d_out)


@check(
    points=0.5,
    layer="causality",
    hint="The diagonal is visible too. And does any step mix the first axis?",
)
def test_sees_past(attempt, draw, sizes, weights, x):
    """lets each token see itself and all of its past, and no other sequence"""
    edited = x.clone()
    edited[0, 1] = draw(sizes.C)
    shared.expect_past_seen(head(attempt, sizes, weights), x, edited, sizes.d_out)


@check(
    points=0.25,
    layer="causality",
    hint="A hidden score must lose against every visible one, however low. What is e to its power?",
)
def test_hidden_for_good(attempt, draw, sizes):
    """hides the future even where all scores are low"""
    weights, (x,) = MODULE.low_scores(draw, sizes)
    edited = x.clone()
    edited[:, 2:, 1:] = draw(sizes.B, sizes.T - 2, sizes.C - 1)
    shared.expect_hidden_for_good(head(attempt, sizes, weights), x, edited)


@check(
    points=0.75,
    layer="values",
    hint="Do the second token of a short sentence by hand, and print scores and weights beside it.",
)
def test_values(attempt, draw):
    """mixes the values by the softmax of the scaled scores"""
    for s, weights, (x,) in shared.cases_of_values(MODULE, LARGE, draw):
        got, expected = head(attempt, s, weights)(x), attention_oracle(x, weights)
        shared.expect_values(got, expected, "sees only itself and should become its own value row")


@check(
    points=0.5,
    layer="values",
    hint="Which number do you divide by, and does it change when d_in does?",
)
def test_square(attempt, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = SQUARE(draw)
    s.d_out, s.T = s.C, s.block
    weights, (x,) = MODULE.low_scores(draw, s, bias=False)
    got = head(attempt, s, weights, qkv_bias=False)(x)
    assert_matches(got, attention_oracle(x, weights))


CONTRACT = module_contract(
    MODULE,
    gradients="",
    parameters="Count: 3 · d_in · d_out, and 3 · d_out more where qkv_bias asks for biases.",
    refuses_beyond_context="",
    dropout_sleeps="",
    dropout_on_weights="",
    again="",
    moves="",
    dtype_and_argument="",
    half_precision="",
)

PRECONDITIONS = {"CausalAttention": of_module(MODULE, bias=False)}
