"""Hidden checks of one causal head with weights of its own."""

import itertools
from functools import partial

import torch

from manyheads.checks import HALF_PRECISION, Layer, assert_near, assert_shape, check, expect

from . import _again
from . import _separate_qkv as shared

FAMILIAR = [(B, T, 10, 14) for B, T in itertools.product((1, 2, 4, 8), (2, 3, 4, 5, 6)) if B != T]
FAMILIAR += [(3, 5, 7, d_out) for d_out in (2, 4, 8, 64)] + [(3, 5, d_in, 7) for d_in in (2, 4, 8, 64)]


def sizes_of(draw):
    return draw.sizes(B=[5, 7], T=[9, 11], d_in=[13, 14], d_out=[10, 15], ctx=[17, 19])


def large_sizes_of(draw):
    return draw.sizes(B=(2, 3), T=(40, 60), d_in=(17, 25), d_out=(11, 14), ctx=(61, 64))


HEAD = shared.Subject("CausalAttention", sizes_of, large_sizes_of)


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape, and let -1 or d_out stand for the rest.")
def test_shape(attempt, draw):
    """gives (B, T, d_out), for any batch and down to a single token"""
    shared.judge_shape(HEAD, attempt, draw, FAMILIAR)


@check(
    points=0.25,
    layer=Layer.SHAPE,
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw):
    """takes fewer tokens than the context holds"""
    shared.judge_shorter(HEAD, attempt, draw)


@check(points=0.25, layer=Layer.FINITE, hint="Can a row of the mask be hidden whole? And what is 0 · ∞?")
def test_finite(attempt, draw):
    """gives no NaN"""
    shared.judge_finite(HEAD, attempt, draw)


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the softmax?",
)
def test_future(attempt, draw):
    """keeps the past as it was when the future is edited"""
    shared.judge_future(HEAD, attempt, draw)


@check(points=0.5, layer=Layer.CAUSALITY, hint="The diagonal is visible too. And does any step mix the first axis?")
def test_sees_past(attempt, draw):
    """lets each token see itself and all of its past, and no other sequence"""
    shared.judge_sees_past(HEAD, attempt, draw)


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="A hidden score must lose against every score that is visible, however low. What is e to the power of it?",
)
def test_hidden_for_good(attempt, draw):
    """hides the future even where all scores are low"""
    shared.judge_hidden_for_good(HEAD, attempt, draw)


@check(
    points=0.75,
    layer=Layer.VALUES,
    hint="Do the second token of a short sentence by hand, and print scores and weights beside it.",
)
def test_values(attempt, reference, draw):
    """mixes the values by the softmax of the scaled scores"""
    shared.judge_values(HEAD, attempt, reference, draw, "token 0 sees only itself and should become its own value row")


@check(points=0.5, layer=Layer.VALUES, hint="Which number do you divide by, and does it change when d_in does?")
def test_square(attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = draw.sizes(B=[5, 7], ctx=[11, 13], d_in=[14, 15])
    s.d_out = s.d_in
    shared.judge_square(HEAD, attempt, reference, draw, s)


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to every weight"""
    shared.judge_gradients(HEAD, attempt, reference, draw)


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Count: 3 · d_in · d_out, and 3 · d_out more where qkv_bias asks for biases."
)
def test_parameters(attempt, draw):
    """learns W_query, W_key and W_value and nothing else"""
    for bias in (False, True):
        s = sizes_of(draw)
        found, wanted = shared.parameters_of(HEAD, attempt, draw, s, bias), shared.shapes_of(HEAD, s, bias)
        shared.judge_names(found, wanted, s.ctx, f"qkv_bias is {bias}")
        for name, shape in wanted.items():
            strange = set(found[name].shape) - {size for other in wanted.values() for size in other}
            said = f"{name} should have shape {shape}; yours has {tuple(found[name].shape)}, whatever is asked for"
            expect(not strange, said, "hard_coded_shape")
            assert_shape(torch.empty(found[name].shape, device="meta"), shape, name)
        HEAD.module(attempt, s, HEAD.weights(draw, s, bias), bias=bias)(draw(s.B, s.ctx, s.d_in)).must_return()


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Compare T with context_length before anything else, and raise a ValueError that names both.",
)
def test_refuses_beyond_context(attempt, draw):
    """refuses more tokens than the context holds"""
    shared.judge_refuses_beyond_context(HEAD, attempt, draw)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="F.dropout is on unless you turn it off; nn.Dropout follows the module's mode.",
)
def test_dropout_sleeps(attempt, draw):
    """leaves dropout out in eval mode"""
    shared.judge_dropout_sleeps(HEAD, attempt, draw)


@check(points=0.25, layer=Layer.HYGIENE, hint="Dropout belongs between the softmax and the values.")
def test_dropout_on_weights(attempt, draw):
    """drops attention weights in training, and scales up the rest"""
    s = sizes_of(draw)
    ask = partial(HEAD.module, attempt.asking(random=True), s, HEAD.weights(draw, s))
    awake, asleep = shared.dropped(ask, draw(1, 1, s.d_in))  # one token: one weight, 1 or struck out
    x = draw(1, 2, s.d_in)
    two = shared.dropped(ask, x)
    shared.without_dropout(ask, x)
    struck, kept = (shared.near(awake, answer).all(-1) for answer in (0 * asleep, asleep / (1 - shared.P)))
    if not (struck | kept).all():
        shared.judge_rate(ask, x, 1)
        shared.judge_extra(awake, asleep)
        shared.judge_misplaced(ask, x, *two, unmoved=shared.near(awake, asleep).all(), heads=1)
    expect((struck | kept).all(), "with one token the answer is neither all 0 nor all scaled up by 1 / (1 − p)")
    share = float(struck.double().mean())
    # 192 coins: a right attempt is 0.21 away once in 8e9 runs. A smaller fault of the share shows in the mean below.
    expect(abs(share - shared.P) <= 0.21, f"with p = {shared.P} {share:.0%} is dropped")
    shared.judge_mean(*two)
    shared.judge_default(ask, x)


@check(points=0.25, layer=Layer.HYGIENE, hint=_again.HINT)
def test_again(attempt, draw):
    """answers every call as a fresh instance would"""
    s = sizes_of(draw)
    state = HEAD.weights(draw, s)
    inputs = (draw(B, T, s.d_in) for B, T in ((s.B, s.T), (s.B, s.T), (3, s.ctx)))
    _again.judge_again(HEAD.module(attempt, s, state), *((x,) for x in inputs))
    _again.judge_modes_again(HEAD.module(attempt, s, state, dropout=_again.P), draw(1, 1, s.d_in), heads=1)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="A tensor that must move with the module and is not learned: register_buffer.",
)
def test_moves(attempt, draw):
    """moves to another device as a whole"""
    shared.judge_moves(HEAD, attempt, draw)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Name no dtype in forward, or take x.dtype; and compute new tensors in place of x.mul_ and the like.",
)
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of its input, and leaves the input as it was"""
    shared.judge_dtype_and_argument(HEAD, attempt, draw)


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s = sizes_of(draw)
    state, x = HEAD.weights(draw, s), draw(s.B, s.T, s.d_in)
    exact = HEAD.module(reference, s, state)(x)
    for dtype in HALF_PRECISION:
        assert_near(HEAD.module(attempt.asking(dtype="float32", autocast=dtype), s, state)(x), exact)


COUNTS_IF = {"CausalAttention": partial(shared.shares_out, HEAD)}
