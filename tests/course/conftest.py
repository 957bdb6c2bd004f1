"""What these tests share: a course of two exercises with a due date, its results, and
overrides.yaml as a person writes it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.course.course_yaml_schema import moment
from manyheads.course.final_scores import NAME, Decisions
from manyheads.result import ExerciseResult, HandedIn, Result
from tests import make

COURSE = """\
title: Averages
time_zone: Europe/Berlin
late: {grace: 30 min, per_day: 10%, at_most: 50%}
assignments:
  - id: averages
    title: Averages
    due: 2026-12-01 18:00
    exercises:
      - {id: mean, title: The mean, points: 4, hint: Count.}
      - {id: median, title: The median, points: 6, hint: Sort first.}
  - id: spread
    title: Spread
    exercises:
      - {id: variance, title: The variance, points: 2, hint: Square it.}
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """The course's folder."""
    (tmp_path / "course.yaml").write_text(COURSE)
    return tmp_path


@pytest.fixture
def decide(course: Path) -> Callable[[str], Decisions]:
    """Read this as overrides.yaml."""

    def read(text: str = "") -> Decisions:
        (course / NAME).write_text(text, encoding="utf-8")
        return Decisions.of_course(load_course(course))

    return read


def exercise(id_: str, *checks: tuple[str, float, float]) -> ExerciseResult:
    """Of these checks: id, score, points."""
    return make.exercise(
        id_, *(make.check(name, got, most, title=f"the {name}") for name, got, most in checks)
    )


def result(student: str = "ada", handed_in: str = "", late: bool = False) -> Result:
    """3 of 4, and 6 of 6."""
    mean = exercise("mean", ("shape", 1, 1), ("values", 2, 3))
    median = exercise("median", ("shape", 2, 2), ("odd", 4, 4))
    when = HandedIn(source="Canvas", time=moment(handed_in) if handed_in else None, late=late)
    return make.result(student, mean, median, handed_in=when if handed_in or late else None)
