from manyheads.checks import Layer, assert_matches, assert_unmutated, check


@check(points=2, layer=Layer.VALUES)
def test_sorts(attempt, draw):
    """sorts lists of several lengths"""
    for length in (7, 12, 0):
        numbers = [draw.integer(-50, 50) for _ in range(length)]
        assert_matches(attempt.call("merge_sort", numbers), sorted(numbers))


@check(points=1, layer=Layer.VALUES)
def test_leaves_its_list(attempt, draw):
    """sorts a list, and leaves the one that it is given as it is"""
    answer = attempt.call("merge_sort", numbers := [draw.integer(-50, 50) for _ in range(9)])
    assert_matches(answer, sorted(numbers))
    assert_unmutated(answer, "list_changed")
