"""Hidden checks of causal multi-head attention by weight split."""

import itertools
from functools import partial
from types import SimpleNamespace

import torch

from manyheads.checks import HALF_PRECISION, Layer, assert_near, assert_refused, assert_shape, check, expect, moved

from . import _again
from . import _separate_qkv as shared

FAMILIAR = [(B, T, 10, 30, 3) for B, T in itertools.product((1, 2, 4, 8), (2, 4, 5, 6, 7)) if B != T]
FAMILIAR += [(3, 5, 10, nh * hd, nh) for nh, hd in ((2, 2), (2, 4), (4, 16), (2, 64), (4, 2), (8, 2), (12, 2))]


def sizes_of(draw, **fixed):
    while True:
        s = draw.sizes(B=[7], T=[11, 17], nh=[5], hd=[6], d_in=[13, 14], ctx=[19, 23])
        s = SimpleNamespace(**{**vars(s), **fixed})
        s.d_out = s.nh * s.hd
        if len(set(vars(s).values())) == len(vars(s)):
            return s


def large_sizes_of(draw):
    while True:
        s = draw.sizes(B=(2, 3), T=(40, 60), nh=(9, 12), hd=(4, 5), d_in=(14, 17), ctx=(61, 64))
        s.d_out = s.nh * s.hd
        if len(set(vars(s).values())) == len(vars(s)):
            return s


LAYER = shared.Subject("MultiHeadAttention", sizes_of, large_sizes_of, several=True)


def passing_through(state, s):
    """The same weights with an out_proj that changes nothing."""
    return state | {
        "out_proj.weight": torch.eye(s.d_out, dtype=torch.float64),
        "out_proj.bias": torch.zeros(s.d_out, dtype=torch.float64),
    }


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape, head_dim from d_out and num_heads.")
def test_shape(attempt, draw):
    """gives (B, T, d_out), for any batch, down to a single token and a single head"""
    shared.judge_shape(LAYER, attempt, draw, FAMILIAR)


@check(
    points=0.25,
    layer=Layer.SHAPE,
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw):
    """takes fewer tokens than the context holds"""
    shared.judge_shorter(LAYER, attempt, draw)


@check(points=0.25, layer=Layer.FINITE, hint="Can a row of the mask be hidden whole? And what is 0 · ∞?")
def test_finite(attempt, draw):
    """gives no NaN"""
    shared.judge_finite(LAYER, attempt, draw)


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the softmax?",
)
def test_future(attempt, draw):
    """keeps the past as it was when the future is edited"""
    shared.judge_future(LAYER, attempt, draw)


@check(points=0.25, layer=Layer.CAUSALITY, hint="The diagonal is visible too. And does any step mix the first axis?")
def test_sees_past(attempt, draw):
    """lets each token see itself and all of its past, and no other sequence"""
    shared.judge_sees_past(LAYER, attempt, draw)


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="A hidden score must lose against every score that is visible, however low. What is e to the power of it?",
)
def test_hidden_for_good(attempt, draw):
    """hides the future even where all scores are low"""
    shared.judge_hidden_for_good(LAYER, attempt, draw)


@check(points=0.25, layer=Layer.CAUSALITY, hint="Which rows of W_query belong to head 0? Follow them into the output.")
def test_heads_apart(attempt, draw):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    s = sizes_of(draw)
    state, x = passing_through(LAYER.weights(draw, s), s), draw(s.B, s.T, s.d_in)
    h = s.nh - 1  # the last one: in another order it stands elsewhere, and what is added up ends before it
    before = LAYER.module(attempt, s, state)(x).output
    assert_shape(before, (s.B, s.T, s.d_out))
    rows = slice(h * s.hd, (h + 1) * s.hd)
    edited = dict(state)
    for name in ("W_query", "W_key"):
        edited[f"{name}.weight"] = state[f"{name}.weight"].clone()
        edited[f"{name}.weight"][rows] = draw.weights(s.hd, s.d_in)
    after = LAYER.module(attempt, s, edited)(x).output
    moves = moved(before.transpose(1, 2), after.transpose(1, 2)).amax(0)  # (d_out,)
    others = [c for c in range(s.d_out) if c // s.hd != h and moves[c] > 1e-5]
    own = [c for c in range(s.d_out) if c // s.hd == h and moves[c] < 1e-9]
    of_head = f"the rows of head {h} in W_query and W_key were edited (out_proj passes everything on)"
    expect(not others, f"{of_head}, and channels {others[:8]} moved: head {h} owns {rows.start}…{rows.stop - 1}")
    expect(not own, f"{of_head}, and its own channels {own[:8]} stayed")


@check(
    points=0.75,
    layer=Layer.VALUES,
    hint="Let out_proj be the identity, take one head, and do the second token by hand.",
)
def test_values(attempt, reference, draw):
    """attends in every head, joins the heads and projects"""
    shared.judge_values(LAYER, attempt, reference, draw, "token 0 should be out_proj of its own value row and is not")


@check(points=0.25, layer=Layer.VALUES, hint="Which sizes does your code read from the wrong place when d_in = d_out?")
def test_square(attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = sizes_of(draw)
    s.d_in = s.d_out
    shared.judge_square(LAYER, attempt, reference, draw, s)


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to every weight"""
    shared.judge_gradients(LAYER, attempt, reference, draw)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Count: 3 · d_in · d_out + d_out · (d_out + 1), and 3 · d_out more for qkv_bias.",
)
def test_parameters(attempt, draw):
    """learns W_query, W_key, W_value and out_proj and nothing else"""
    s = sizes_of(draw)
    for bias in (False, True):
        found, wanted = shared.parameters_of(LAYER, attempt, draw, s, bias), shared.shapes_of(LAYER, s, bias)
        if "out_proj.weight" not in found:
            x, state = draw(s.B, s.ctx, s.d_in), LAYER.weights(draw, s)
            first, second = (LAYER.module(attempt.asking(seed=seed), s, state)(x) for seed in (0, 1))
            differ = first.raised is None and second.raised is None and not torch.equal(first.output, second.output)
            expect(not differ, "out_proj is made anew in every call: nothing is learnt", "params_not_registered")
            hidden = found.keys() <= wanted.keys() and "out_proj.weight" not in first.module.unloaded
            told = "out_proj has a weight, and no optimiser will ever see it: it is not among the parameters"
            expect(not hidden, told, "params_not_registered")
        shared.judge_names(found, wanted, s.ctx, f"qkv_bias is {bias}")
        for name, shape in wanted.items():
            assert_shape(torch.empty(found[name].shape, device="meta"), shape, name)
        LAYER.module(attempt, s, LAYER.weights(draw, s, bias), bias=bias)(draw(s.B, s.ctx, s.d_in)).must_return()


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Compare T with context_length before anything else, and raise a ValueError that names both.",
)
def test_refuses_beyond_context(attempt, draw):
    """refuses more tokens than the context holds"""
    shared.judge_refuses_beyond_context(LAYER, attempt, draw)


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Take d_out % num_heads in __init__, and raise a ValueError that names both."
)
def test_refuses_uneven_heads(attempt, draw):
    """refuses, when it is made, a d_out that does not divide into heads"""
    s = sizes_of(draw)
    LAYER.module(attempt, s, LAYER.weights(draw, s))(draw(s.B, s.ctx, s.d_in)).must_return()  # who refuses everything?
    for d_out, nh in ((s.d_out + 1, s.nh), (s.nh, s.d_out)):
        made = attempt.module("MultiHeadAttention", s.d_in, d_out, s.ctx, nh).built()
        assert_refused(made, f"d_out = {d_out} with num_heads = {nh}", suspect="divisibility_unchecked")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="F.dropout is on unless you turn it off; nn.Dropout follows the module's mode.",
)
def test_dropout_sleeps(attempt, draw):
    """leaves dropout out in eval mode"""
    shared.judge_dropout_sleeps(LAYER, attempt, draw)


@check(points=0.25, layer=Layer.HYGIENE, hint="Dropout belongs between the softmax and the values.")
def test_dropout_on_weights(attempt, draw):
    """drops attention weights in training, and scales up the rest"""
    s = sizes_of(draw, nh=2)
    ask = partial(LAYER.module, attempt.asking(random=True), s, passing_through(LAYER.weights(draw, s), s))
    awake, asleep = shared.dropped(ask, draw(1, 1, s.d_in))  # one token: one weight a head, 1 or struck out
    x = draw(1, 2, s.d_in)
    two = shared.dropped(ask, x)
    shared.without_dropout(ask, x)
    one = SimpleNamespace(**{**vars(s), "nh": 1, "hd": s.d_out})
    # Of the only head a part is left where channels are dropped one by one: `course check` sees that.
    shared.dropped(
        partial(LAYER.module, attempt.asking(random=True), one, passing_through(LAYER.weights(draw, one), one)),
        draw(1, 1, s.d_in),
    )
    struck, kept = (shared.near(awake, answer) for answer in (0 * asleep, asleep / (1 - shared.P)))
    whole = (struck | kept).all() and len(struck.flatten(1).unique(dim=0)) <= 2**s.nh
    if not whole:
        shared.judge_rate(ask, x, s.nh)
        shared.judge_extra(awake, asleep)
        shared.judge_misplaced(ask, x, *two, unmoved=shared.near(awake, asleep).all(), heads=s.nh)
    expect(whole, "with one token every head should give all 0 or all of its value scaled up by 1 / (1 − p)")
    share = float(struck.double().mean())
    # 192 coins a head: a right attempt is 0.154 away once in 7e10 runs.
    expect(abs(share - shared.P) <= 0.154, f"with dropout = {shared.P} a share of {share:.2f} is dropped")
    shared.judge_mean(*two)
    shared.judge_default(ask, x)


@check(points=0.25, layer=Layer.HYGIENE, hint=_again.HINT)
def test_again(attempt, draw):
    """answers every call as a fresh instance would"""
    s = sizes_of(draw)
    state = LAYER.weights(draw, s)
    inputs = (draw(B, T, s.d_in) for B, T in ((s.B, s.T), (s.B, s.T), (3, s.ctx)))
    _again.judge_again(LAYER.module(attempt, s, state), *((x,) for x in inputs))
    dropping = LAYER.module(attempt, s, passing_through(state, s), dropout=_again.P)
    _again.judge_modes_again(dropping, draw(1, 1, s.d_in), s.nh)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="A tensor that must move with the module and is not learned: register_buffer.",
)
def test_moves(attempt, draw):
    """moves to another device as a whole"""
    shared.judge_moves(LAYER, attempt, draw)


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Name no dtype in forward, or take x.dtype; and compute new tensors in place of x.mul_ and the like.",
)
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of its input, and leaves the input as it was"""
    shared.judge_dtype_and_argument(LAYER, attempt, draw)


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s = sizes_of(draw)
    state, x = LAYER.weights(draw, s), draw(s.B, s.T, s.d_in)
    exact = LAYER.module(reference, s, state)(x)
    for dtype in HALF_PRECISION:
        assert_near(LAYER.module(attempt.asking(dtype="float32", autocast=dtype), s, state)(x), exact)


COUNTS_IF = {"MultiHeadAttention": partial(shared.shares_out, LAYER)}
