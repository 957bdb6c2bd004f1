"""A course of two assignments, one with a due date; its overrides.yaml; and a result in it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from manyheads.course import load_course
from manyheads.course.course_yaml_schema import moment
from manyheads.course.final_scores import NAME, Decisions
from manyheads.result import HandedIn, Result
from tests import make

BERLIN = "Europe/Berlin"
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
# The same inputs in each run: no test depends on chance or load.
FUZZ = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
Decide = Callable[..., Decisions]


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """The folder of a course."""
    (tmp_path / "course.yaml").write_text(COURSE)
    return tmp_path


@pytest.fixture
def decide(course_folder: Path) -> Decide:
    """Read an overrides.yaml with these rows."""

    def read(*rows: str) -> Decisions:
        text = "# mine\n" + "".join(f"- {{{row}}}\n" for row in rows)
        (course_folder / NAME).write_text(text, encoding="utf-8")
        return Decisions.of_course(load_course(course_folder))

    return read


def result_of_ada(handed_in: str = "", late: bool = False) -> Result:
    """Ada's result: 3 of 4, and 6 of 6. The time without a zone is Berlin's."""
    mean = make.exercise("mean", make.check("shape", 1), make.check("values", 2, 3))
    median = make.exercise("median", make.check("all", 6, 6))
    time = moment(handed_in, BERLIN) if handed_in else None
    hand_in = HandedIn(source="Canvas", time=time, late=late) if handed_in or late else None
    return make.result("ada", mean, median, handed_in=hand_in)
