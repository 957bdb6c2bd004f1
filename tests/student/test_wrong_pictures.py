"""Pictures of a class's wrong attempts: run again in the box, on public inputs, and only where a picture tells something."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.level import Box
from manyheads.course import Course
from manyheads.result import Outcome, Result
from manyheads.student.plot_content import Band, compared
from manyheads.student.wrong_pictures import MOST, Painter, drawable, most_informative
from tests import make

FILE = "01_running_mean.py"
WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def graded(student: str, *outcomes: Outcome) -> Result:
    checks = [make.check(f"c{i}", outcome=end) for i, end in enumerate(outcomes)]
    return make.result(student, make.exercise("running_mean", *checks, max_score=4))


def band(title: str, apart: float) -> Band:
    return compared(title, torch.zeros(2, 2), torch.full((2, 2), apart), "numbers", "", "")


@pytest.fixture
def draw(tiny: Course, box: Box, tmp_path: Path) -> Callable[[str], tuple[Band, ...]]:
    """The pictures of this source."""
    painter, students = Painter(tiny, box), iter("abcdefgh")

    def draw(source: str) -> tuple[Band, ...]:
        student = next(students)
        (tmp_path / student).mkdir()
        (tmp_path / student / FILE).write_text(source, encoding="utf-8")
        folders = {(student, "averages"): tmp_path / student}
        (wanted,) = drawable(tiny, [graded(student, "failed")], folders)
        return painter.draw(wanted)

    return draw


def test_wrong_numbers_stand_beside_the_recorded_ones(draw: Callable[[str], tuple[Band, ...]]) -> None:
    (shown,) = draw(WRONG)
    expected, yours, apart = (panel.values for panel in shown.panels)
    assert shown.title == "running_mean(x)"
    torch.testing.assert_close(yours[0, -1], expected[0, -1])  # the mean of all of them is right
    torch.testing.assert_close(apart, (yours - expected).double())


@pytest.mark.parametrize("source", [
    "def running_mean(x):\n    return x.cumsum(0) / (1 + x.new_ones(len(x)).cumsum(0) - 1)\n",
    "def running_mean(x):\n    raise ValueError('no')\n",
    "def running_mean(x):\n    return x[1:]\n",
    "def running_mean(x):\n    import os\n    os._exit(0)\n",
    "def running_mean(x)\n",
    "import nothing_of_that_name\n",
    "def running_mean(x):\n    return None\n",
], ids=["right", "raises", "another shape", "ends", "no Python", "cannot be imported", "no tensor"])  # fmt: skip
def test_where_a_picture_tells_nothing_there_is_none(draw: Callable[[str], tuple[Band, ...]], source: str) -> None:
    assert draw(source) == ()


def test_what_two_handed_in_is_run_once(draw: Callable[[str], tuple[Band, ...]], box: Box, monkeypatch) -> None:
    first = draw(WRONG)
    monkeypatch.setattr(type(box), "attempt", None)
    assert draw(WRONG) is first


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe not text \x00", "stub"], ids=["missing", "unreadable", "the stub"]
)
def test_where_nothing_was_written_nothing_is_run(tiny, box, monkeypatch, tmp_path, content):
    if content is not None:
        assignment = tiny.assignments[0]
        stub = assignment.exercises[0].script.read_bytes()
        (tmp_path / FILE).write_bytes(content if isinstance(content, bytes) else stub)
    (wanted,) = drawable(tiny, [graded("a", "error")], {("a", "averages"): tmp_path})
    monkeypatch.setattr(type(box), "attempt", None)
    assert Painter(tiny, box).draw(wanted) == ()


@pytest.mark.parametrize(("outcomes", "is_drawn"), [
    (("passed", "failed"), True),
    (("passed", "error"), True),
    (("passed", "passed"), False),
    (("failed", "crashed"), False),
    (("failed", "timeout"), False),
    (("missing",), False),
])  # fmt: skip
def test_only_what_failed_and_ended_well_is_run_again(tiny, outcomes, is_drawn):
    assert bool(drawable(tiny, [graded("a", *outcomes)], {("a", "averages"): Path("here")})) is is_drawn


def test_who_is_not_in_the_folder_or_not_in_the_course_is_not_drawn(tiny: Course) -> None:
    elsewhere = graded("a", "failed").model_copy(update={"assignment": "other"})
    folders = {("a", "other"): Path("here"), ("b", "averages"): Path("here")}
    assert drawable(tiny, [graded("a", "failed"), elsewhere], folders) == []


def test_the_first_wrong_head_stands_for_all_and_there_is_an_end() -> None:
    many = [band("right", 0), band("mask", 1), band("weights, head 0", 0), band("weights, head 1", 1)]
    many += [band("weights, head 2", 1), *(band(f"more {i}", 1) for i in range(9))]
    titles = [each.title for each in most_informative(many)]
    assert titles == ["mask", "weights, head 1", "more 0", "more 1"]
    assert len(titles) == MOST
