"""Hidden checks of @@id."""

from manyheads.checks import Layer, assert_matches, assert_shape, check


def in_chunks(implementation, weights, *chunks):
    """The answers to the chunks: each call gets the state that the one before it returned, and nobody looks at it."""
    calls, state = implementation.module("@@class", 3).loaded(weights).sequence(), None
    for chunk in chunks:
        state = calls(chunk, state)["state"]
    return calls.ask()


@check(points=1, layer=Layer.SHAPE)
def test_shape(attempt, draw):
    """gives an output for every token"""
    # FILL: what shape is asked for. The docstring is the line that the student reads.
    answer = attempt.module("@@class", 3).loaded({"proj.weight": draw(3, 3)})(draw(4, 7, 3))
    assert_shape(answer["y"], (4, 7, 3))


@check(points=1, layer=Layer.VALUES)
def test_one_chunk(attempt, reference, draw):
    """gives the right numbers"""
    # FILL: sizes and inputs that no wrong attempt gets through by chance
    weights, x = {"proj.weight": draw(3, 3)}, draw(4, 7, 3)
    (got,), (want,) = in_chunks(attempt, weights, x), in_chunks(reference, weights, x)
    assert_matches(got, want)


@check(points=1, layer=Layer.VALUES)
def test_chunks(attempt, reference, draw):
    """goes on where the last chunk ended"""
    # FILL: what else a state must carry, and that a state can be continued twice
    weights, chunks = {"proj.weight": draw(3, 3)}, (draw(4, 5, 3), draw(4, 2, 3), draw(4, 6, 3))
    for got, want in zip(in_chunks(attempt, weights, *chunks), in_chunks(reference, weights, *chunks), strict=True):
        assert_matches(got, want)
