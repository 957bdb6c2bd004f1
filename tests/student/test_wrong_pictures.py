"""Pictures of a class's wrong attempts: run again in the box, on public inputs, and only where a picture tells something."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.box.level import Box
from manyheads.course import Course
from manyheads.result import Outcome, Result
from manyheads.student import plot_content
from manyheads.student.plot_content import DRAWN, Picture, draw_wrong, drawable
from tests import make

FILE = "01_running_mean.py"
STUB = (make.REPOSITORY / "tests/tiny_course/exercises/averages" / FILE).read_bytes()
WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def graded(student: str, *outcomes: Outcome) -> Result:
    checks = [make.check(f"c{i}", outcome=end) for i, end in enumerate(outcomes)]
    return make.result(student, make.exercise("running_mean", *checks, max_score=4))


@pytest.fixture
def draw(tiny: Course, box: Box, tmp_path: Path) -> Callable[..., list[tuple[Picture, ...]]]:
    """The pictures of these sources, a student each."""

    def draw(*sources: str) -> list[tuple[Picture, ...]]:
        folders = {(student, "averages"): tmp_path / student for student, _ in zip("abc", sources, strict=False)}
        for folder, source in zip(folders.values(), sources, strict=True):
            folder.mkdir()
            (folder / FILE).write_text(source, encoding="utf-8")
        wanted = drawable(tiny, [graded(student, "failed") for student, _ in folders], folders)
        return [pictures for _, pictures in draw_wrong(tiny, box, wanted)]

    return draw


def test_wrong_numbers_stand_beside_the_recorded_ones(draw) -> None:
    ((shown,),) = draw(WRONG)
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
def test_where_a_picture_tells_nothing_there_is_none(draw, source: str) -> None:
    assert draw(source) == [()]


def test_what_two_handed_in_is_run_once_and_there_is_an_end(draw, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Picture("f(x)", "", (), "", "", differs=True)
    runs = iter([[replace(shown, differs=False), *[shown] * (DRAWN + 1)]])
    monkeypatch.setattr(plot_content, "pictures", lambda _: next(runs))
    assert draw(WRONG, WRONG) == [(shown,) * DRAWN] * 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe not text \x00", STUB], ids=["missing", "unreadable", "the stub"])
def test_where_nothing_was_written_nothing_is_run(tiny, box, monkeypatch, tmp_path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    (wanted,) = drawable(tiny, [graded("a", "error")], {("a", "averages"): tmp_path})
    monkeypatch.setattr(type(box), "attempt", None)
    assert list(draw_wrong(tiny, box, [wanted])) == [(wanted.key, ())]


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
