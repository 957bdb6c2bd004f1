"""What each trick earns, what a lost check says of it, and that nobody else is touched."""

import pytest

from tests.hostile.conftest import SECTIONS, texts_of
from tests.hostile.tricks import TRICKS

LEAST = {"mutated_bytes": 0, "passes_the_connection_on": 0}  # where chance decides which way it fails


def marked(section, *more):
    """Attempts that exhaust the machine are a journey: most of them last until somebody ends them."""
    marks = [pytest.mark.journey] if "exhausting" in section else []
    return pytest.param(section, *more, marks=marks, id=more[0] if more else section)


of_each_section = pytest.mark.parametrize("run", [marked(section) for section in SECTIONS], indirect=True)


@pytest.fixture(scope="module")
def run(request, classes):
    """The whole section, graded."""
    return classes.section(request.param)


@pytest.mark.parametrize("kind", TRICKS)
def test_every_trick_stands_in_the_table(kind):
    assert texts_of(kind).keys() == TRICKS[kind].keys()


@pytest.mark.parametrize(("run", "trick", "most", "says"), [
    marked(section, trick, *row[:2])
    for section in SECTIONS
    for kind in section.split("+")
    for trick, row in TRICKS[kind].items()
], indirect=["run"])  # fmt: skip
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says, least=LEAST.get(trick))


@of_each_section
def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


@of_each_section
def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
