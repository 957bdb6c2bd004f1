"""Hidden checks of a running mean that goes on."""

from manyheads.checks import Layer, assert_matches, assert_refused, assert_shape, check


def in_chunks(implementation, state, *chunks):
    """The answer to each chunk, each continued where the one before it ended."""
    calls, known = implementation.module("RunningMean", 3).loaded(state).sequence(), None
    for chunk in chunks:
        known = calls(chunk) if known is None else calls(chunk, known["state"])
    return calls.ask()


@check(points=1, layer=Layer.SHAPE)
def test_shape(attempt, draw):
    """gives a mean for every token"""
    answer = attempt.module("RunningMean", 3).loaded({"proj.weight": draw(3, 3)})(draw(4, 7, 3))
    assert_shape(answer["means"], (4, 7, 3))


@check(points=1, layer=Layer.VALUES)
def test_one_chunk(attempt, reference, draw):
    """averages all tokens so far"""
    x, state = draw(4, 7, 3), {"proj.weight": draw(3, 3)}
    got, want = (each.module("RunningMean", 3).loaded(state)(x) for each in (attempt, reference))
    assert_matches(got, want)


@check(points=1, layer=Layer.VALUES)
def test_chunks(attempt, reference, draw):
    """goes on where the last chunk ended"""
    state, chunks = {"proj.weight": draw(3, 3)}, (draw(4, 5, 3), draw(4, 2, 3), draw(4, 6, 3))
    for got, want in zip(in_chunks(attempt, state, *chunks), in_chunks(reference, state, *chunks), strict=True):
        assert_matches(got["means"], want["means"])


@check(points=1, layer=Layer.CAUSALITY)
def test_twice(attempt, reference, draw):
    """leaves a state as it was, so that it can be continued twice"""
    state, (first, one, other) = {"proj.weight": draw(3, 3)}, (draw(4, 5, 3), draw(4, 6, 3), draw(4, 2, 3))

    def both_ways(implementation):
        calls = implementation.module("RunningMean", 3).loaded(state).sequence()
        seen = calls(first)["state"]
        calls(one, state=seen)
        calls(other, state=seen)
        return calls.ask()

    for got, want in zip(both_ways(attempt), both_ways(reference), strict=True):
        assert_matches(got, want)


@check(points=1, layer=Layer.HYGIENE)
def test_refuses_nothing(attempt, draw):
    """refuses a chunk without tokens"""
    module = attempt.module("RunningMean", 3).loaded({"proj.weight": draw(3, 3)})
    module(draw(4, 2, 3)).must_return()
    assert_refused(module(draw(4, 0, 3)), "a chunk without tokens", suspect="empty_unchecked")
