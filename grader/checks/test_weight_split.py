"""Hidden checks of causal multi-head attention by weight split."""

import itertools

from manyheads.checks import expect, moved

from . import _modules
from . import _separate_qkv as shared
from ._conditions import of_module
from ._modules import Layers, Sizes, asked_of, half_precision, joined, without_nan

FAMILIAR = [
    (B, T, 10, 30, 3) for B, T in itertools.product((1, 2, 4, 8), (2, 4, 5, 6, 7)) if B != T
]
FAMILIAR += [
    (3, 5, 10, nh * hd, nh)
    for nh, hd in ((2, 2), (2, 4), (4, 16), (2, 64), (4, 2), (8, 2), (12, 2))
]
SIZES = Sizes(B=[7], T=[11, 17], nh=[5], hd=[6], C=[13, 14], block=[19, 23], d_out=joined)
LARGE = Sizes(B=(2, 3), T=(40, 60), nh=(9, 12), hd=(4, 5), C=(14, 17), block=(61, 64), d_out=joined)
LAYER = shared.Subject("MultiHeadAttention", SIZES, LARGE, SIZES, FAMILIAR, several=True)
layer = Layers(LAYER)


test_shape = asked_of(
    LAYER,
    shared.shape,
    "gives (B, T, d_out), for any batch, down to a single token and a single head",
    "Take B and T from x.shape, head_dim from d_out and num_heads.",
)
test_shorter = asked_of(LAYER, shared.shorter)
test_finite = asked_of(LAYER, without_nan)
test_future = asked_of(LAYER, shared.future)
test_sees_past = asked_of(LAYER, shared.sees_past)
test_hidden_for_good = asked_of(LAYER, shared.hidden_for_good)


@layer.causality(0.25, "Which rows of W_query belong to head 0? Follow them into the output.")
def test_heads_apart(attempt, draw, s):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    state, x = LAYER.passing_on(LAYER.weights(draw, s)), draw(s.B, s.T, s.C)
    # The last head. If the heads are in another order it is elsewhere, and heads that are added up
    # fill only the first channels.
    h = s.nh - 1
    baseline = LAYER.answered(attempt, s, state, x)
    rows, edited = slice(h * s.hd, s.d_out), dict(state)
    for name in ("W_query.weight", "W_key.weight"):
        edited[name] = state[name].clone()
        edited[name][rows] = draw.weights(s.hd, s.C)
    after = LAYER.module(attempt, s, edited)(x).output
    moves = moved(baseline.transpose(1, 2), after.transpose(1, 2)).amax(0)  # (d_out,)
    leaks = [c for c in range(s.d_out) if c // s.hd != h and moves[c] > 1e-5]
    unmoved = [c for c in range(s.d_out) if c // s.hd == h and moves[c] < 1e-9]
    of_head = (
        f"the rows of head {h} in W_query and W_key were edited (out_proj passes everything on)"
    )
    expect(
        not leaks,
        f"{of_head}, and channels {leaks[:8]} moved: head {h} owns {rows.start}…{rows.stop - 1}",
    )
    expect(not unmoved, f"{of_head}, and its own channels {unmoved[:8]} stayed")


test_values = asked_of(
    LAYER,
    shared.values,
    "attends in every head, joins the heads and projects",
    "Let out_proj be the identity, take one head, and do the second token by hand.",
)
test_square = asked_of(
    LAYER,
    shared.square,
    hint="Which sizes does your code read from the wrong place when d_in = d_out?",
)
test_gradients = asked_of(LAYER, shared.gradients)
test_parameters = asked_of(
    LAYER,
    shared.parameters,
    "learns W_query, W_key, W_value and out_proj and nothing else",
    "Count: 3 · d_in · d_out + d_out · (d_out + 1), and 3 · d_out more for qkv_bias.",
)
test_refuses_beyond_context = asked_of(LAYER, shared.refuses_beyond_context)
test_refuses_uneven_heads = asked_of(LAYER, _modules.refuses_uneven_heads)
test_dropout_sleeps = asked_of(LAYER, shared.dropout_sleeps)
test_dropout_on_weights = asked_of(LAYER, shared.dropout_on_weights)
test_again = asked_of(LAYER, shared.again)
test_moves = asked_of(LAYER, shared.moves)
test_dtype_and_argument = asked_of(LAYER, shared.dtype_and_argument)
test_half_precision = asked_of(LAYER, half_precision)

PRECONDITIONS = {"MultiHeadAttention": of_module(LAYER, bias=False)}
