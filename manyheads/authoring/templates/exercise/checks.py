"""Hidden checks of @@id."""

import @@library

from manyheads.checks import assert_matches, assert_shape, check


def by_hand(x):
    # FILL: another way to the same numbers, slow and plain, in place of this line
    return @@{short}.asarray([2 * number for number in x.tolist()], dtype=x.dtype)


@check(points=1, layer="shape")
def test_shape(attempt, draw):
    """gives as many numbers as it gets"""
    # FILL: what shape is asked for. The docstring is the line that the student reads.
    assert_shape(attempt.@@id(draw(7)@@given), (7,))


@check(points=1, layer="values")
def test_values(attempt, draw):
    """gives the right numbers"""
    # FILL: sizes and inputs that no wrong attempt gets through by chance
    x = draw(draw.integer(5, 9))@@given
    assert_matches(attempt.@@id(x), by_hand(x))
