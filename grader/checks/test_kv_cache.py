"""Hidden checks of causal self-attention that goes on where an earlier call ended."""

from math import prod
from types import SimpleNamespace

import torch

from manyheads.checks import (
    CheckFailed,
    agrees,
    assert_finite,
    assert_matches,
    assert_refused,
    assert_shape,
    expect,
)

from . import _cached as shared
from . import _modules
from ._cached import CACHED, Fed, differs, fed
from ._conditions import of_module
from ._modules import Layers, asked_of, changed, dtype_and_argument, parameters, refuses_indivisible

layer = Layers(CACHED)


def compare(attempt, reference, draw, s, sizes, label, weights=None):
    """Fail unless y of every chunk is the reference's.

    Args:
        sizes: the lengths of the chunks.
    """
    chunks, weights = [draw(s.B, T, s.C) for T in sizes], weights or CACHED.weights(draw, s)
    answers = (
        fed(CACHED.module(implementation, s, weights), *chunks)
        for implementation in (attempt, reference)
    )
    for n, (got, want) in enumerate(zip(*answers, strict=True), 1):
        assert_matches(got["y"], want["y"], f"{label}, y of call {n}")


@layer.shape(0.25, "y is for the new tokens alone, however many the cache holds.")
def test_shape(attempt, draw, s):
    """gives (y, cache), with y of the shape of x, in every call"""
    weights, sizes = CACHED.weights(draw, s), (4, 1, 9)
    for T in (1, s.block):
        assert_shape(CACHED.module(attempt, s, weights)(draw(s.B, T, s.C))["y"], (s.B, T, s.C), "y")
    answers = fed(CACHED.module(attempt, s, weights), *(draw(s.B, T, s.C) for T in sizes))
    for n, (answer, T) in enumerate(zip(answers, sizes, strict=True), 1):
        assert_shape(answer["y"], (s.B, T, s.C), f"y of call {n}")


@Layers(Fed(4, 3)).finite(0.25)
def test_finite(attempt, draw, s, weights, inputs):
    """gives numbers, in every call"""
    for answer in fed(CACHED.module(attempt, s, weights), *inputs):
        assert_finite(answer["y"])


@Layers(Fed(6, 5)).causality(
    0.25, "Query i of a chunk stands at position past + i: which keys come later?"
)
def test_causal(attempt, draw, s, weights, inputs):
    """lets no token see the future, in the first chunk or a later one"""
    baseline = fed(CACHED.module(attempt, s, weights), *inputs)
    for n, t in ((0, 3), (1, 2)):
        edited = [chunk.clone() for chunk in inputs]
        edited[n][:, t:] = draw(*edited[n][:, t:].shape)
        after = fed(CACHED.module(attempt, s, weights), *edited)
        for a, chunk in zip((*baseline, *after), (*inputs, *inputs), strict=True):
            assert_shape(a["y"], chunk.shape, "y")
        changed = differs(baseline[n]["y"].output, after[n]["y"].output).amax((0, 2))
        evidence = (
            f"a change of the tokens from {t} on, in chunk {n + 1}, reaches the token"
            f" {int(changed.nonzero()[:1].sum())} of it"
        )
        expect(not changed[:t].any(), evidence)
        expect(
            changed[t:].all(),
            f"a change of the tokens from {t} on, in chunk {n + 1}, does not reach all of these",
        )


@Layers(Fed(4, 3)).causality(0.25)
def test_independent(attempt, draw, s, weights, inputs):
    """keeps the sequences of a batch apart, in the cache, too"""
    edited = [chunk.clone() for chunk in inputs]
    for chunk in edited:
        chunk[2] = draw(*chunk[2].shape)
    answers = (fed(CACHED.module(attempt, s, weights), *chunks) for chunks in (inputs, edited))
    for baseline, after, chunk in zip(*answers, inputs, strict=True):
        assert_shape(baseline["y"], chunk.shape, "y")
        assert_shape(after["y"], chunk.shape, "y")
        changed = differs(baseline["y"].output, after["y"].output).amax((1, 2)).tolist()
        leaks = changed[:2] + changed[3:]
        expect(
            not any(leaks),
            "a change of sequence 2 of the batch also changes what another one gives",
        )


@layer.values(0.75, "A first call without a cache is plain causal attention: begin there.")
def test_one_call(attempt, agree, draw, s):
    """attends right in a single call"""
    # Some cases have as many tokens as channels of a head, or as heads. Then the sizes no longer
    # stop an attempt that mixes up these axes.
    for T, nh in (
        (11, s.nh),
        (1, s.nh),
        (s.block, s.nh),
        (9, 1),
        (s.hd, s.nh),
        (s.nh, s.nh),
        (10, 3),
    ):
        weights, x = CACHED.weights(draw, s), draw(s.B, T, s.C)
        agree(changed(s, nh=nh), weights, (x,), f"with {T} tokens and {nh} heads, y")
    module = CACHED.module(attempt, s, weights)
    awake = [module.asking(random=True, seed=n).training()(x)["y"].output for n in (1, 2)]
    evidence = "training mode gives another y at every call: no dropout is asked for here"
    expect(torch.equal(*(y.nan_to_num() for y in awake)), evidence, "dropout_extra")
    expect(agrees(awake[0], module(x)["y"].output), "training mode gives another y than eval mode")


@layer.values(0.5, "A new token sees all that is cached, and itself. What does your mask show it?")
def test_token_by_token(attempt, reference, draw, s):
    """gives one token after the other what a single call gives"""
    compare(attempt, reference, draw, s, [1] * 6, "token by token", CACHED.weights(draw, s))
    compare(attempt, reference, draw, s, (9, 1, 1), "after a prompt of 9 tokens")


@Layers(Fed(9, 4)).values(
    0.25, "How many rows have your scores in a second call? How many new tokens are there?"
)
def test_new_queries_alone(attempt, reference, draw, s, weights, inputs):
    """computes scores for the new tokens alone"""
    got, want = (
        fed(CACHED.module(implementation.asking(watch=True), s, weights), *inputs)[-1]
        for implementation in (attempt, reference)
    )
    assert_matches(got["y"], want["y"], "after 9 tokens, y of 4 more")
    # A mask may be square, because there is one for all sequences. Fused code shows no scores.
    squares = [
        shape
        for shape in got.reply.operations.shapes
        if shape[-2:] == (13, 13) and prod(shape[:-2]) >= s.B
    ]
    evidence = (
        f"with 9 tokens in the cache and 4 new ones, a tensor of shape {squares and squares[0]} is"
        " made"
    )
    expect(not squares, f"{evidence}: queries of past tokens are made again", "cache_recomputed")


@layer.values(
    0.75, "With 3 cached and 2 new tokens the mask is (2, 5). In which corner is its triangle?"
)
def test_chunks(attempt, reference, draw, s):
    """gives chunks of any sizes what a single call gives"""
    for sizes in ((4, 9), (9, 4), (1, 8, 2, 5), (8, 8, 1)):
        compare(attempt, reference, draw, s, sizes, f"in chunks of {', '.join(map(str, sizes))}")
    large = SimpleNamespace(B=2, nh=9, hd=4, C=36, block=70)
    compare(attempt, reference, draw, large, (20, 43, 1), "with 9 heads and 64 tokens")
    module, chunks = (
        CACHED.module(attempt, s, CACHED.weights(draw, s)),
        [draw(s.B, T, s.C) for T in (9, 4)],
    )

    def outputs(instance):
        return [answer["y"].output for answer in fed(instance, *chunks)]

    in_training, in_eval = outputs(module.training()), outputs(module)
    first_agrees, second = (agrees(a, b) for a, b in zip(in_training, in_eval, strict=True))
    expect(
        second or not first_agrees,
        "in training mode a second chunk gets another y than in eval mode",
    )


@Layers(Fed(4, 3, 2, 1)).values(
    0.5, "append, += and writing into a slice change what the caller still holds."
)
def test_two_beams(attempt, reference, draw, s, weights, inputs):
    """leaves a cache as it was, so that it can be continued twice"""
    # All chunks together fit into the block. So no call is refused, even if a cache wrongly holds
    # every chunk.
    prompt, beam, two, last_chunk = inputs

    def answers(implementation):
        calls = CACHED.module(implementation, s, weights).sequence()
        past = calls(prompt)["cache"]
        first_cache, second = calls(beam, past)["cache"], calls(two, past)["cache"]
        calls(last_chunk, first_cache)
        calls(beam, second)
        calls(beam, past)
        return calls.ask()

    for n, (got, want) in enumerate(zip(answers(attempt), answers(reference), strict=True), 1):
        assert_matches(got["y"], want["y"], f"where caches are continued twice, y of call {n}")


@Layers(Fed(5, 3, 2, 4)).values(
    0.5, "cache=None is a new sequence. What does the module still know of the last one?"
)
def test_starts_anew(attempt, reference, draw, s, weights, inputs):
    """starts anew without a cache, and keeps two sequences apart"""
    a, b, c, d = inputs
    larger = draw(s.B + 2, 6, s.C)

    def answers(implementation):
        calls = CACHED.module(implementation, s, weights).sequence()
        first_cache, second = calls(a)["cache"], calls(b)["cache"]
        calls(c, first_cache)
        calls(d, second)
        calls(larger)
        calls(a, None)
        return calls.ask()

    for n, (got, want) in enumerate(zip(answers(attempt), answers(reference), strict=True), 1):
        try:
            assert_matches(got["y"], want["y"], f"where two sequences take turns, y of call {n}")
        except CheckFailed:
            evidence = (
                "a first call gives another answer without a cache than with cache=None: the"
                " default is not None"
            )
            expect(not shared.keeps_in_default(attempt, s, weights, a), evidence, "cache_shared")
            evidence = (
                "a call without a cache gives another answer when the sequence before it was"
                " another one"
            )
            expect(not shared.hears_the_last(attempt, s, weights, a, b), evidence, "cache_shared")
            raise


@layer.gradients(0.25)
def test_gradients(attempt, reference, draw, s, weights, inputs):
    """lets gradients through to x and to both weights, in a first call"""
    _modules.judge_gradients(CACHED, attempt, reference, s, weights, inputs, (draw(s.B, 9, s.C),))


test_parameters = asked_of(
    CACHED, parameters, "has 4C² parameters, qkv.weight and proj.weight, and no others"
)
test_refuses_indivisible = asked_of(CACHED, refuses_indivisible)


@layer.hygiene(0.5, "One new token is always few: what is the cache's length?")
def test_refuses_too_long(attempt, draw, s):
    """refuses more tokens than block_size, also where most of them are in the cache"""
    module = CACHED.module(attempt, s, CACHED.weights(draw, s))
    full = [draw(s.B, T, s.C) for T in (s.block - 4, 3, 1)]
    fed(module, *full)[-1].must_return()
    too_long, label = (
        module(draw(s.B, s.block + 2, s.C)),
        f"T = {s.block + 2} with block_size = {s.block}",
    )
    assert_refused(too_long, label, also=("RuntimeError",), suspect="context_unchecked")
    for past, T in ((full, 1), (full, 3), (full[:2], 3)):
        answer = fed(module, *past, draw(s.B, T, s.C))[-1]
        label = (
            f"a cache of {sum(x.shape[1] for x in past)} tokens and {T} more, with block_size ="
            f" {s.block},"
        )
        suspect = (
            "cache_length_unchecked"
            if answer.raised is None and not shared.forgets(module, s, draw)
            else ""
        )
        assert_refused(answer, label, also=("RuntimeError",), suspect=suspect)


test_dtype_and_argument = asked_of(
    Fed(5, 3), dtype_and_argument, "follows the dtype of x, and leaves x as it was", ""
)


@Layers(Fed(5, 3)).hygiene(0.25, "A mask or a cache that you make needs a device: that of x.")
def test_moves(attempt, draw, s, weights, inputs):
    """works where .to(device) has put it, with a cache and without"""
    fed(CACHED.module(attempt, s, weights), *inputs)[-1].must_return()
    _modules.moves(Fed(5, 3), attempt, draw, s)


PRECONDITIONS = {CACHED.name: of_module(CACHED)}
