"""Hidden checks of the mean and the spread."""

from manyheads.checks import Layer, assert_gradients_match, assert_matches, assert_shape, check


@check(points=1, layer=Layer.SHAPE)
def test_shapes(attempt, draw):
    """gives one mean and one spread for each row"""
    mean, spread = attempt.call("mean_and_spread", draw(5, 7))
    assert_shape(mean, (5,))
    assert_shape(spread, (5,))


@check(points=2, layer=Layer.VALUES)
def test_mean_and_spread(attempt, reference, draw):
    """finds mean and spread"""
    x = draw(4, 7)
    assert_matches(attempt.call("mean_and_spread", x), reference.call("mean_and_spread", x))


@check(points=1, layer=Layer.VALUES)
def test_no_spread(attempt, reference, draw):
    """finds no spread where there is none"""
    x = draw(3, 1)
    assert_matches(attempt.call("mean_and_spread", x), reference.call("mean_and_spread", x))


@check(points=1, layer=Layer.GRADIENTS)
def test_gradients(attempt, reference, draw):
    """lets gradients through both"""
    x, both = draw(4, 6), (draw(4), draw(4))
    got, want = (each.asking(cotangent=both).call("mean_and_spread", x) for each in (attempt, reference))
    assert_gradients_match(got, want, "args.0", suspect_if_cut="gradient_cut")
