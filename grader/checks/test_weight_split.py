"""Hidden checks of causal multi-head attention by weight split."""

import itertools
from functools import partial

import torch

from manyheads.checks import Layer, assert_refused, assert_shape, check, expect, moved

from . import _separate_qkv as shared
from ._modules import asked_of, changed, half_precision

FAMILIAR = [(B, T, 10, 30, 3) for B, T in itertools.product((1, 2, 4, 8), (2, 4, 5, 6, 7)) if B != T]
FAMILIAR += [(3, 5, 10, nh * hd, nh) for nh, hd in ((2, 2), (2, 4), (4, 16), (2, 64), (4, 2), (8, 2), (12, 2))]


def sizes_of(draw, **fixed):
    s = changed(draw.sizes(B=[7], T=[11, 17], nh=[5], hd=[6], d_in=[13, 14], ctx=[19, 23]), **fixed)
    return changed(s, d_out=s.nh * s.hd)


def large_sizes_of(draw):
    while True:
        s = draw.sizes(B=(2, 3), T=(40, 60), nh=(9, 12), hd=(4, 5), d_in=(14, 17), ctx=(61, 64))
        s.d_out = s.nh * s.hd
        if len(set(vars(s).values())) == len(vars(s)):
            return s


LAYER = shared.Subject("MultiHeadAttention", sizes_of, large_sizes_of, several=True)


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape, head_dim from d_out and num_heads.")
def test_shape(attempt, draw):
    """gives (B, T, d_out), for any batch, down to a single token and a single head"""
    shared.judge_shape(LAYER, attempt, draw, FAMILIAR)


test_shorter = asked_of(LAYER, shared.shorter)
test_finite = asked_of(LAYER, shared.finite)
test_future = asked_of(LAYER, shared.future)


@check(points=0.25, layer=Layer.CAUSALITY, hint="The diagonal is visible too. And does any step mix the first axis?")
def test_sees_past(attempt, draw):
    """lets each token see itself and all of its past, and no other sequence"""
    shared.judge_sees_past(LAYER, attempt, draw)


test_hidden_for_good = asked_of(LAYER, shared.hidden_for_good)


@check(points=0.25, layer=Layer.CAUSALITY, hint="Which rows of W_query belong to head 0? Follow them into the output.")
def test_heads_apart(attempt, draw):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    s = sizes_of(draw)
    state, x = LAYER.passing_on(LAYER.weights(draw, s), s), draw(s.B, s.T, s.d_in)
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


test_gradients = asked_of(LAYER, shared.gradients)


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


test_refuses_beyond_context = asked_of(LAYER, shared.refuses_beyond_context)


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


test_dropout_sleeps = asked_of(LAYER, shared.dropout_sleeps)
test_dropout_on_weights = asked_of(LAYER, shared.dropout_on_weights)
test_again = asked_of(LAYER, shared.again)
test_moves = asked_of(LAYER, shared.moves)
test_dtype_and_argument = asked_of(LAYER, shared.dtype_and_argument)
test_half_precision = asked_of(LAYER, half_precision)


COUNTS_IF = {"MultiHeadAttention": partial(shared.shares_out, LAYER)}
