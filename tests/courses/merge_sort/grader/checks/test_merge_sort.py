from manyheads.checks import Layer, assert_matches, assert_unmutated, check


def drawn(draw, length):
    return [draw.integer(-50, 50) for _ in range(length)]


@check(points=1, layer=Layer.VALUES)
def test_merge(attempt, draw):
    """merges two sorted lists"""
    left, right = sorted(drawn(draw, 5)), sorted(drawn(draw, 8))
    assert_matches(attempt.call("merge", left, right), sorted(left + right))


@check(points=2, layer=Layer.VALUES)
def test_sorts(attempt, draw):
    """sorts lists of several lengths"""
    for numbers in (drawn(draw, 7), drawn(draw, 12), []):
        assert_matches(attempt.call("merge_sort", numbers), sorted(numbers))


@check(points=1, layer=Layer.HYGIENE)
def test_leaves_its_list(attempt, draw):
    """sorts a list, and leaves the one that it is given as it is"""
    answer = attempt.call("merge_sort", numbers := drawn(draw, 9))
    assert_matches(answer, sorted(numbers))
    assert_unmutated(answer, "list_changed")
