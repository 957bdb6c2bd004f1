"""Hidden checks of the running mean."""

import torch

from manyheads.checks import assert_gradients_match, assert_matches, assert_refused, assert_shape, check


def mean_by_hand(x):
    return torch.tensor([sum(x[: t + 1].tolist()) / (t + 1) for t in range(len(x))], dtype=x.dtype)


@check(points=1, layer="shape")
def test_shape(attempt, draw):
    """gives as many numbers as it gets"""
    assert_shape(attempt.running_mean(draw(7)), (7,))


@check(points=1, layer="values")
def test_values(attempt, draw):
    """averages all that came so far"""
    x = draw(draw.integer(5, 9))
    assert_matches(attempt.running_mean(x), mean_by_hand(x))


@check(points=1, layer="gradients")
def test_gradients(attempt, reference, draw):
    """lets gradients through"""
    x, g = draw(6), draw(6)
    got, want = (c.with_options(cotangent=g).running_mean(x) for c in (attempt, reference))
    assert_gradients_match(got, want, "args.0", suspect_if_cut="gradient_cut")


@check(points=1, layer="hygiene")
def test_refuses_nothing(attempt, draw):
    """refuses an empty input"""
    attempt.running_mean(draw(3)).must_return()  # who refuses everything has refused nothing
    assert_refused(
        attempt.running_mean(torch.empty(0, dtype=torch.float64)), "T = 0", suspect="empty_unchecked"
    )
