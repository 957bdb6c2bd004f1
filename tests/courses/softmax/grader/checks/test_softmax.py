import math

import numpy as np

from manyheads.checks import Layer, assert_finite, assert_matches, check


def by_hand(x):
    return np.array([[math.exp(n) / sum(map(math.exp, row)) for n in row] for row in x.tolist()])


@check(points=2, layer=Layer.VALUES)
def test_values(attempt, draw):
    """gives each row's shares"""
    x = draw(draw.integer(3, 5), 7).numpy()
    assert_matches(attempt.call("softmax", x), by_hand(x))


@check(points=1, layer=Layer.VALUES)
def test_large(attempt, reference, draw):
    """gives numbers for large numbers, too"""
    x = 1000 * draw(4, 6).numpy()
    answer = attempt.call("softmax", x)
    assert_finite(answer)
    assert_matches(answer, reference.call("softmax", x))
