"""Two students who know of each other: what one leaves behind, the other does not find, before, after or meanwhile."""

from pathlib import Path

import pytest

from tests.hostile.conftest import hands_in

ATTEMPTS = Path(__file__).parent / "attempts" / "between"
LEAVES = (ATTEMPTS / "leaves_everything_behind.py").read_text(encoding="utf-8")
LOOKS = (ATTEMPTS / "looks_for_what_is_left.py").read_text(encoding="utf-8")
PAIRS = 2


@pytest.fixture(scope="module", params=[1, 2], ids=["one judge after the other", "two judges at once"])
def run(request, classes):
    """Those who leave and those who look, in turns: with two judges, one of each at any time."""
    texts = {f"{i}_{what}": text for i in range(PAIRS) for what, text in (("leaves", LEAVES), ("looks", LOOKS))}
    students = {name: hands_in(f"{text}# {name}\n") for name, text in texts.items()}  # the same would be judged once
    return classes.tricks(f"between_{request.param}_judges", students, jobs=request.param, neighbours=False)


@pytest.mark.parametrize("pair", range(PAIRS))
def test_who_looks_sees_nothing_and_answers(run, pair):
    """Each thing that could be seen is an exception of its own, and the evidence would name it."""
    run.assert_earned(f"{pair}_looks", 4, "")


@pytest.mark.parametrize("pair", range(PAIRS))
def test_who_leaves_things_behind_earns_nothing(run, pair):
    run.assert_earned(f"{pair}_leaves", 0, "No answer within|ended")


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    assert run.status == 0, run.text
    classes.assert_untouched(run)
