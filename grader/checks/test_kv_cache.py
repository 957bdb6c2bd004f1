"""Hidden checks of causal self-attention that goes on where an earlier call ended."""

from functools import partial
from math import prod
from types import SimpleNamespace

import torch

from manyheads.checks import (
    CheckFailed,
    assert_finite,
    assert_matches,
    assert_refused,
    assert_shape,
    assert_unmutated,
    expect,
)

from . import _cached as shared
from . import _layers as layer
from . import _modules
from ._cached import CACHED, differs, fed
from ._modules import asked_of, parameters, refuses_indivisible


def compare(attempt, reference, draw, s, sizes, what, weights=None):
    """Every chunk's y is the reference's. sizes: of the chunks."""
    chunks = [draw(s.B, T, s.C) for T in sizes]
    weights = weights or CACHED.weights(draw, s)
    answers = (fed(CACHED.module(each, s, weights), *chunks) for each in (attempt, reference))
    for n, (got, want) in enumerate(zip(*answers, strict=True), 1):
        assert_matches(got["y"], want["y"], f"{what}, y of call {n}")


def case(draw, *sizes):
    """Sizes, weights and chunks of so many tokens."""
    s = CACHED.sizes(draw)
    return s, CACHED.weights(draw, s), [draw(s.B, T, s.C) for T in sizes]


@layer.shape(0.25, "y is for the new tokens alone, however many the cache holds.")
def test_shape(attempt, draw):
    """gives (y, cache), with y of the shape of x, in every call"""
    s = CACHED.sizes(draw)
    weights, sizes = CACHED.weights(draw, s), (4, 1, 9)
    for T in (1, s.block):
        assert_shape(CACHED.module(attempt, s, weights)(draw(s.B, T, s.C))["y"], (s.B, T, s.C), "y")
    answers = fed(CACHED.module(attempt, s, weights), *(draw(s.B, T, s.C) for T in sizes))
    for n, (answer, T) in enumerate(zip(answers, sizes, strict=True), 1):
        assert_shape(answer["y"], (s.B, T, s.C), f"y of call {n}")


@layer.finite(0.25)
def test_finite(attempt, draw):
    """gives numbers, in every call"""
    s, weights, chunks = case(draw, 4, 3)
    for answer in fed(CACHED.module(attempt, s, weights), *chunks):
        assert_finite(answer["y"])


@layer.causality(0.25, "Query i of a chunk stands at position past + i: which keys come later?")
def test_causal(attempt, draw):
    """lets no token see the future, in the first chunk or a later one"""
    s, weights, chunks = case(draw, 6, 5)
    before = fed(CACHED.module(attempt, s, weights), *chunks)
    for n, t in ((0, 3), (1, 2)):
        edited = [chunk.clone() for chunk in chunks]
        edited[n][:, t:] = draw(*edited[n][:, t:].shape)
        after = fed(CACHED.module(attempt, s, weights), *edited)
        for a, chunk in zip((*before, *after), (*chunks, *chunks), strict=True):
            assert_shape(a["y"], chunk.shape, "y")
        changed = differs(before[n]["y"].output, after[n]["y"].output).amax((0, 2))
        told = f"a change of the tokens from {t} on, in chunk {n + 1}, reaches the token {int(changed.nonzero()[:1].sum())} of it"
        expect(not changed[:t].any(), told)
        expect(changed[t:].all(), f"a change of the tokens from {t} on, in chunk {n + 1}, does not reach all of these")


@layer.causality(0.25)
def test_independent(attempt, draw):
    """keeps the sequences of a batch apart, in the cache, too"""
    s, weights, chunks = case(draw, 4, 3)
    edited = [chunk.clone() for chunk in chunks]
    for chunk in edited:
        chunk[2] = draw(*chunk[2].shape)
    answers = (fed(CACHED.module(attempt, s, weights), *each) for each in (chunks, edited))
    for before, after, chunk in zip(*answers, chunks, strict=True):
        assert_shape(before["y"], chunk.shape, "y")
        assert_shape(after["y"], chunk.shape, "y")
        changed = differs(before["y"].output, after["y"].output).amax((1, 2)).tolist()
        expect(
            not any(changed[:2] + changed[3:]),
            "a change of sequence 2 of the batch also changes what another one gives",
        )


@layer.values(0.75, "A first call without a cache is plain causal attention: begin there.")
def test_one_call(attempt, reference, draw):
    """attends right in a single call"""
    s = CACHED.sizes(draw)
    # As many tokens as channels of a head, or as heads: there who mixes up these axes is no longer stopped by the sizes.
    for T, nh in ((11, s.nh), (1, s.nh), (s.block, s.nh), (9, 1), (s.hd, s.nh), (s.nh, s.nh)):
        weights, x = CACHED.weights(draw, s), draw(s.B, T, s.C)
        what = f"with {T} tokens and {nh} heads, y"
        CACHED.assert_matches(attempt, reference, _modules.changed(s, nh=nh), weights, (x,), what)
    awake = [CACHED.module(attempt.asking(random=True, seed=n), s, weights).training()(x)["y"].output for n in (1, 2)]
    told = "training mode gives another y at every call: no dropout is asked for here"
    expect(torch.equal(*(y.nan_to_num() for y in awake)), told, "dropout_extra")


@layer.values(0.5, "A new token sees all that is cached, and itself. What does your mask show it?")
def test_token_by_token(attempt, reference, draw):
    """gives one token after the other what a single call gives"""
    s = CACHED.sizes(draw)
    compare(attempt, reference, draw, s, [1] * 6, "token by token", CACHED.weights(draw, s))
    compare(attempt, reference, draw, s, (9, 1, 1), "after a prompt of 9 tokens")


@layer.values(0.25, "How many rows does your table of scores have in a second call? How many new tokens are there?")
def test_new_queries_alone(attempt, reference, draw):
    """computes scores for the new tokens alone"""
    s, weights, chunks = case(draw, 9, 4)
    got, want = (fed(CACHED.module(each.asking(watch=True), s, weights), *chunks)[-1] for each in (attempt, reference))
    assert_matches(got["y"], want["y"], "after 9 tokens, y of 4 more")
    # A mask may be square, which is one for all sequences; fused code shows no scores.
    squares = [each for each in got.reply.operations.shapes if each[-2:] == (13, 13) and prod(each[:-2]) >= s.B]
    told = f"with 9 tokens in the cache and 4 new ones, a tensor of shape {squares and squares[0]} is made"
    expect(not squares, f"{told}: queries of past tokens are made again", "cache_recomputed")


@layer.values(0.75, "With 3 cached and 2 new tokens the mask is (2, 5). In which corner is its triangle?")
def test_chunks(attempt, reference, draw):
    """gives chunks of any sizes what a single call gives"""
    s = CACHED.sizes(draw)
    for sizes in ((4, 9), (9, 4), (1, 8, 2, 5), (8, 8, 1)):
        compare(attempt, reference, draw, s, sizes, f"in chunks of {', '.join(map(str, sizes))}")
    large = SimpleNamespace(B=2, nh=9, hd=4, C=36, block=70)
    compare(attempt, reference, draw, large, (20, 43, 1), "with 9 heads and 64 tokens")


@layer.values(0.5, "append, += and writing into a slice change what the caller still holds.")
def test_two_beams(attempt, reference, draw):
    """leaves a cache as it was, so that it can be continued twice"""
    # All calls together stay within the block: a cache that has all of them is too long for none.
    s, weights, (prompt, one, two, more) = case(draw, 4, 3, 2, 1)

    def answers(implementation):
        calls = CACHED.module(implementation, s, weights).sequence()
        past = calls(prompt)["cache"]
        first, second = calls(one, past)["cache"], calls(two, past)["cache"]
        calls(more, first)
        calls(one, second)
        calls(one, past)
        return calls.ask()

    for n, (got, want) in enumerate(zip(answers(attempt), answers(reference), strict=True), 1):
        assert_matches(got["y"], want["y"], f"where caches are continued twice, y of call {n}")


@layer.values(0.5, "cache=None is a new sequence. What does the module still know of the last one?")
def test_starts_anew(attempt, reference, draw):
    """starts anew without a cache, and keeps two sequences apart"""
    s, weights, (a, b, c, d) = case(draw, 5, 3, 2, 4)
    larger = draw(s.B + 2, 6, s.C)

    def answers(implementation):
        calls = CACHED.module(implementation, s, weights).sequence()
        first, second = calls(a)["cache"], calls(b)["cache"]
        calls(c, first)
        calls(d, second)
        calls(larger)
        calls(a, None)
        return calls.ask()

    for n, (got, want) in enumerate(zip(answers(attempt), answers(reference), strict=True), 1):
        try:
            assert_matches(got["y"], want["y"], f"where two sequences take turns, y of call {n}")
        except CheckFailed:
            expect(not shared.keeps_in_default(attempt, s, weights, a), shared.KEPT_IN_DEFAULT, "cache_shared")
            expect(not shared.hears_the_last(attempt, s, weights, a, b), shared.HEARS_THE_LAST, "cache_shared")
            raise


@layer.gradients(0.25)
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to both weights, in a first call"""
    s, weights, inputs = CACHED.case(draw)
    _modules.judge_gradients(CACHED, attempt, reference, s, weights, inputs, (draw(s.B, 9, s.C),))


test_parameters = asked_of(CACHED, parameters, "has 4C² parameters, qkv.weight and proj.weight, and no others")
test_refuses_indivisible = asked_of(CACHED, refuses_indivisible)


@layer.hygiene(0.5, "One new token is always few: what is the cache's length?")
def test_refuses_too_long(attempt, draw):
    """refuses more tokens than block_size, also where most of them are in the cache"""
    s = CACHED.sizes(draw)
    module = CACHED.module(attempt, s, CACHED.weights(draw, s))
    full = [draw(s.B, T, s.C) for T in (s.block - 4, 3, 1)]
    fed(module, *full)[-1].must_return()
    too_long, what = module(draw(s.B, s.block + 2, s.C)), f"T = {s.block + 2} with block_size = {s.block}"
    assert_refused(too_long, what, also=("RuntimeError",), suspect="context_unchecked")
    for T in (1, 3):
        answer = fed(module, *full, draw(s.B, T, s.C))[-1]
        what = f"a cache of {s.block} tokens and {T} more, with block_size = {s.block},"
        suspect = "cache_length_unchecked" if answer.raised is None and not shared.forgets(module, s, draw) else ""
        assert_refused(answer, what, also=("RuntimeError",), suspect=suspect)


@layer.hygiene(0.25)
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of x, and leaves x as it was"""
    s, weights, chunks = case(draw, 5, 3)
    dtypes = ("float32", "float64")
    answers = {dtype: fed(CACHED.module(attempt.asking(dtype=dtype), s, weights), *chunks) for dtype in dtypes}
    works = [dtype for dtype, each in answers.items() if each[0].raised is None]
    for dtype, (first, second) in answers.items():
        suspect = "hard_coded_dtype" if CACHED.is_registered(first, s) else ""
        expect(not works or dtype in works, f"it works in {' '.join(works)} only: {dtype} fails", suspect)
        assert_unmutated(first, suspect="input_mutated")
        for answer in (first["y"], second["y"]):
            follows = answer.dtype in (dtype, answer.kind)
            expect(follows, f"{dtype} in should give {dtype} out, not {answer.dtype}", suspect)


@layer.hygiene(0.25, "A mask or a cache that you make needs a device: that of x.")
def test_moves(attempt, draw):
    """works where .to(device) has put it, with a cache and without"""
    s, weights, chunks = case(draw, 5, 3)
    fed(CACHED.module(attempt, s, weights), *chunks)[-1].must_return()
    for device in {"meta", attempt.device} - {"cpu"}:
        chunks = [torch.empty(s.B, T, s.C, device="meta") if device == "meta" else draw(s.B, T, s.C) for T in (5, 3)]
        answer = fed(CACHED.module(attempt.asking(watch=True), s, weights).on(device), *chunks)[-1]
        _modules.expect_moved(answer, device, CACHED.is_registered(answer, s))


COUNTS_IF = {CACHED.name: partial(_modules.attends_to_itself, CACHED)}
