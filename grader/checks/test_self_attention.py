"""Hidden checks of one causal head with three separate projections."""

import itertools

from . import _separate_qkv as shared
from ._conditions import of_module
from ._modules import Sizes, asked_of, half_precision, without_nan

FAMILIAR = [(B, T, 10, 14) for B, T in itertools.product((1, 2, 4, 8), (2, 3, 4, 5, 6)) if B != T]
FAMILIAR += [(3, 5, 7, d_out) for d_out in (2, 4, 8, 64)] + [
    (3, 5, d_in, 7) for d_in in (2, 4, 8, 64)
]


SIZES = Sizes(B=[5, 7], T=[9, 11], C=[13, 14], d_out=[10, 15], block=[17, 19], nh=lambda *_: 1)
LARGE = Sizes(B=(2, 3), T=(40, 60), C=(17, 25), d_out=(11, 14), block=(61, 64), nh=lambda *_: 1)
SQUARE = Sizes(B=[5, 7], block=[11, 13], C=[14, 15], nh=lambda *_: 1)
HEAD = shared.Subject("CausalAttention", SIZES, LARGE, SQUARE, FAMILIAR)


test_shape = asked_of(
    HEAD, shared.shape, hint="Take B and T from x.shape, and let -1 or d_out stand for the rest."
)
test_shorter = asked_of(HEAD, shared.shorter)
test_finite = asked_of(HEAD, without_nan)
test_future = asked_of(HEAD, shared.future)
test_sees_past = asked_of(HEAD, shared.sees_past, points=0.5)
test_hidden_for_good = asked_of(HEAD, shared.hidden_for_good)
test_values = asked_of(HEAD, shared.values)
test_square = asked_of(
    HEAD,
    shared.square,
    hint="Which number do you divide by, and does it change when d_in does?",
    points=0.5,
)
test_gradients = asked_of(HEAD, shared.gradients)
test_parameters = asked_of(
    HEAD,
    shared.parameters,
    hint="Count: 3 · d_in · d_out, and 3 · d_out more where qkv_bias asks for biases.",
)
test_refuses_beyond_context = asked_of(HEAD, shared.refuses_beyond_context)
test_dropout_sleeps = asked_of(HEAD, shared.dropout_sleeps)
test_dropout_on_weights = asked_of(HEAD, shared.dropout_on_weights)
test_again = asked_of(HEAD, shared.again)
test_moves = asked_of(HEAD, shared.moves)
test_dtype_and_argument = asked_of(HEAD, shared.dtype_and_argument)
test_half_precision = asked_of(HEAD, half_precision)

PRECONDITIONS = {"CausalAttention": of_module(HEAD, bias=False)}
