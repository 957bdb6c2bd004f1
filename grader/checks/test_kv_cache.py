"""Hidden checks of causal self-attention that goes on where an earlier call ended."""

from math import prod
from types import SimpleNamespace

import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Listed,
    agrees,
    assert_finite,
    assert_matches,
    assert_shape,
    check,
    expect,
    module_contract,
    replace_sizes,
)

from . import _cached as shared
from ._cached import answers_to, differs, drawn_chunks
from ._conditions import of_module
from ._modules import judge_gradients

MODULE, CHUNKED = shared.Cached(), shared.Chunked()
SIZES = MODULE.sizes


def layer(implementation, s, weights):
    """Return the module of these sizes with these weights."""
    return implementation.CachedSelfAttention(s.C, s.nh, s.block).with_parameters(weights)


def expect_outputs(got, want, label):
    """Fail unless y of every call is the reference's."""
    for n, (answer, expected) in enumerate(zip(got, want, strict=True), 1):
        assert_matches(answer["y"], expected["y"], Evidence("{}, y of call {}", label, n))


def expect_chunks(attempt, reference, s, weights, chunks, label):
    """Fail unless y of every chunk is the reference's."""
    got, want = (answers_to(layer(c, s, weights), chunks) for c in (attempt, reference))
    expect_outputs(got, want, label)


def outputs(answers, chunks):
    """Return y of each call, and fail unless it has the shape of its chunk."""
    for answer, chunk in zip(answers, chunks, strict=True):
        assert_shape(answer["y"], chunk.shape, "y")
    return [answer["y"].output for answer in answers]


@check(
    points=0.25,
    layer="shape",
    hint="y is for the new tokens alone, however many the cache holds.",
)
def test_shape(attempt, draw, sizes, weights):
    """gives (y, cache), with y of the shape of x, in every call"""
    module = layer(attempt, sizes, weights)
    for T in (1, sizes.block):
        x = draw(sizes.B, T, sizes.C)
        assert_shape(module(x)["y"], x.shape, "y")
    chunks = drawn_chunks(draw, sizes, 4, 1, 9)
    for n, (answer, x) in enumerate(zip(answers_to(module, chunks), chunks, strict=True), 1):
        assert_shape(answer["y"], x.shape, Evidence("y of call {}", n))


@check(points=0.25, layer="finite")
def test_finite(attempt, draw, sizes, weights):
    """gives numbers, in every call"""
    chunks = drawn_chunks(draw, sizes, 4, 3)
    for answer in answers_to(layer(attempt, sizes, weights), chunks):
        assert_finite(answer["y"])


@check(
    points=0.25,
    layer="causality",
    hint="Query i of a chunk stands at position past + i: which keys come later?",
)
def test_causal(attempt, draw, sizes, weights):
    """lets no token see the future, in the first chunk or a later one"""
    module, chunks = layer(attempt, sizes, weights), drawn_chunks(draw, sizes, 6, 5)
    answers = answers_to(module, chunks)
    for n, t in ((0, 3), (1, 2)):
        edited = [chunk.clone() for chunk in chunks]
        edited[n][:, t:] = draw(*edited[n][:, t:].shape)
        answers_to_edited = answers_to(module, edited)
        baseline, after = (outputs(several, chunks) for several in (answers, answers_to_edited))
        changes = differs(baseline[n], after[n]).amax((0, 2))
        edit = Evidence("a change of the tokens from {} on, in chunk {},", t, n + 1)
        earliest = int(changes.nonzero()[:1].sum())
        expect(not changes[:t].any(), Evidence("{} reaches the token {} of it", edit, earliest))
        expect(changes[t:].all(), Evidence("{} does not reach all of these", edit))


@check(points=0.25, layer="causality")
def test_independent(attempt, draw, sizes, weights):
    """keeps the sequences of a batch apart, in the cache, too"""
    module, chunks = layer(attempt, sizes, weights), drawn_chunks(draw, sizes, 4, 3)
    edited = [chunk.clone() for chunk in chunks]
    for chunk in edited:
        chunk[2] = draw(*chunk[2].shape)
    answers, answers_to_edited = answers_to(module, chunks), answers_to(module, edited)
    baseline, after = (outputs(several, chunks) for several in (answers, answers_to_edited))
    evidence = "a change of sequence 2 of the batch also changes what another one gives"
    for y, y_of_edited in zip(baseline, after, strict=True):
        changes = differs(y, y_of_edited).amax((1, 2)).tolist()
        expect(not any(changes[:2] + changes[3:]), evidence)


@check(
    points=0.75,
    layer="values",
    hint="A first call without a cache is plain causal attention: begin there.",
)
def test_one_call(attempt, reference, draw, sizes):
    """attends right in a single call"""
    s = sizes
    # Some cases have as many tokens as channels of a head, or as heads. Then the sizes no longer
    # stop an attempt that mixes up these axes.
    lengths = 11, 1, s.block
    for T, nh in (*((T, s.nh) for T in lengths), (9, 1), (s.hd, s.nh), (s.nh, s.nh), (10, 3)):
        weights, x = MODULE.weights(draw, s), draw(s.B, T, s.C)
        label = Evidence("with {} tokens and {} heads, y", T, nh)
        MODULE.assert_matches(attempt, reference, replace_sizes(s, nh=nh), weights, (x,), label)
    module = layer(attempt, s, weights)
    awake = [
        module.with_options(random=True, seed=n).in_training_mode()(x)["y"].output for n in (1, 2)
    ]
    evidence = "training mode gives another y at every call: no dropout is asked for here"
    expect(torch.equal(*(y.nan_to_num() for y in awake)), evidence, "dropout_extra")
    expect(agrees(awake[0], module(x)["y"].output), "training mode gives another y than eval mode")


@check(
    points=0.5,
    layer="values",
    hint="A new token sees all that is cached, and itself. What does your mask show it?",
)
def test_token_by_token(attempt, reference, draw, sizes, weights):
    """gives one token after the other what a single call gives"""
    tokens = drawn_chunks(draw, sizes, *[1] * 6)
    expect_chunks(attempt, reference, sizes, weights, tokens, "token by token")
    chunks, weights = drawn_chunks(draw, sizes, 9, 1, 1), MODULE.weights(draw, sizes)
    label = "after a prompt of 9 tokens"
    expect_chunks(attempt, reference, sizes, weights, chunks, label)


@check(
    points=0.25,
    layer="values",
    hint="How many rows have your scores in a second call? How many new tokens are there?",
)
def test_new_queries_alone(attempt, reference, draw, sizes, weights):
    """computes scores for the new tokens alone"""
    chunks = drawn_chunks(draw, sizes, 9, 4)
    watched = (c.with_options(watch=True) for c in (attempt, reference))
    got, want = (answers_to(layer(c, sizes, weights), chunks)[-1] for c in watched)
    assert_matches(got["y"], want["y"], "after 9 tokens, y of 4 more")
    # A mask may be square, because there is one for all sequences. Fused code shows no scores.
    squares = [
        shape
        for shape in got.reply.operations.shapes
        if shape[-2:] == (13, 13) and prod(shape[:-2]) >= sizes.B
    ]
    evidence = Evidence(
        "with 9 tokens in the cache and 4 new ones, a tensor of shape {} is made: "
        "queries of past tokens are made again",
        squares and squares[0],
    )
    expect(not squares, evidence, "cache_recomputed")


@check(
    points=0.75,
    layer="values",
    hint="With 3 cached and 2 new tokens the mask is (2, 5). In which corner is its triangle?",
)
def test_chunks(attempt, reference, draw, sizes):
    """gives chunks of any sizes what a single call gives"""
    large = SimpleNamespace(B=2, nh=9, hd=4, C=36, block=70)
    cases = [
        (sizes, lengths, Evidence("in chunks of {}", Listed(lengths)))
        for lengths in ((4, 9), (9, 4), (1, 8, 2, 5), (8, 8, 1))
    ]
    for s, lengths, label in (*cases, (large, (20, 43, 1), "with 9 heads and 64 tokens")):
        chunks, weights = drawn_chunks(draw, s, *lengths), MODULE.weights(draw, s)
        expect_chunks(attempt, reference, s, weights, chunks, label)
    module = layer(attempt, sizes, MODULE.weights(draw, sizes))
    chunks = drawn_chunks(draw, sizes, 9, 4)
    in_training, in_eval = answers_to(module.in_training_mode(), chunks), answers_to(module, chunks)
    pairs = zip(in_training, in_eval, strict=True)
    first_agrees, second_agrees = (agrees(a["y"], b["y"]) for a, b in pairs)
    evidence = "in training mode a second chunk gets another y than in eval mode"
    expect(second_agrees or not first_agrees, evidence)


@check(
    points=0.5,
    layer="values",
    hint="append, += and writing into a slice change what the caller still holds.",
)
def test_two_beams(attempt, reference, draw, sizes, weights):
    """leaves a cache as it was, so that it can be continued twice"""
    # All chunks together fit into the block. So no call is refused, even if a cache wrongly holds
    # every chunk.
    prompt, beam, second_beam, last_chunk = drawn_chunks(draw, sizes, 4, 3, 2, 1)

    def answers(implementation):
        calls = layer(implementation, sizes, weights).sequence()
        past = calls(prompt)["cache"]
        first_cache, second_cache = calls(beam, past)["cache"], calls(second_beam, past)["cache"]
        calls(last_chunk, first_cache)
        calls(beam, second_cache)
        calls(beam, past)
        return calls.ask()

    expect_outputs(answers(attempt), answers(reference), "where caches are continued twice")


@check(
    points=0.5,
    layer="values",
    hint="cache=None is a new sequence. What does the module still know of the last one?",
)
def test_starts_anew(attempt, reference, draw, sizes, weights):
    """starts anew without a cache, and keeps two sequences apart"""
    a, b, c, d = drawn_chunks(draw, sizes, 5, 3, 2, 4)
    larger = draw(sizes.B + 2, 6, sizes.C)

    def answers(implementation):
        calls = layer(implementation, sizes, weights).sequence()
        first_cache, second_cache = calls(a)["cache"], calls(b)["cache"]
        calls(c, first_cache)
        calls(d, second_cache)
        calls(larger)
        calls(a, None)
        return calls.ask()

    got, want = answers(attempt), answers(reference)
    try:
        expect_outputs(got, want, "where two sequences take turns")
    except CheckFailed:
        module = layer(attempt, sizes, weights)
        evidence = (
            "a first call gives another answer without a cache than with cache=None: the default is"
            " not None"
        )
        expect(not shared.keeps_in_default(module, a), evidence, "cache_shared")
        evidence = (
            "a call without a cache gives another answer when the sequence before it was another"
            " one"
        )
        expect(not shared.hears_the_last(module, a, b), evidence, "cache_shared")
        raise


@check(points=0.25, layer="gradients")
def test_gradients(attempt, reference, draw, sizes, weights, x):
    """lets gradients through to x and to both weights, in a first call"""
    cotangents = (draw(sizes.B, sizes.T, sizes.C),)
    judge_gradients(MODULE, attempt, reference, sizes, weights, (x,), cotangents)


CONTRACT = [
    *module_contract(
        MODULE,
        parameters=("has 4C² parameters, qkv.weight and proj.weight, and no others", ""),
        refuses_indivisible="",
        refuses_too_long="",
    ),
    *module_contract(
        CHUNKED,
        dtype_and_argument=("follows the dtype of x, and leaves x as it was", ""),
        moves="",
    ),
]

PRECONDITIONS = {"CachedSelfAttention": of_module(MODULE)}
