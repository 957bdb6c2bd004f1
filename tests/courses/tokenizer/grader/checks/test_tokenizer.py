from manyheads.checks import Layer, assert_matches, check

WORDS = "the cat sat on a mat and dog ran far".split()


@check(points=2, layer=Layer.VALUES)
def test_encode(attempt, draw):
    """gives each word its place, also words that it does not know"""
    for length in (6, 11):
        places = [draw.integer(0, 9) for _ in range(length)]
        text = " ".join(WORDS[index] for index in places)
        assert_matches(attempt.call("encode", f"{text.title()} zebra", WORDS), [*places, len(WORDS)])


@check(points=1, layer=Layer.VALUES)
def test_decode(attempt, reference, draw):
    """writes the words at these places"""
    for length in (4, 7):
        places = [draw.integer(0, 9) for _ in range(length)]
        assert_matches(attempt.call("decode", places, WORDS), reference.call("decode", places, WORDS))
