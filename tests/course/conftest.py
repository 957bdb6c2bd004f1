"""A course with two assignments, a function for its overrides.yaml, and a result."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from manyheads.course import load_course
from manyheads.course.course_yaml_schema import moment
from manyheads.course.final_scores import NAME, Decisions
from manyheads.result import HandedIn, Result
from manyheads.submission.roster_and_times import Student
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
MEMBERS = (
    Student("ada", section="A", group="red"),
    Student("bela", section="A", group="blue"),
    Student("chen", section="B", group="red"),
)
# derandomize: every run uses the same inputs; no deadline: a busy machine may be slow
FUZZ = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
Decide = Callable[..., Decisions]


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """Return the folder of the course."""
    (tmp_path / "course.yaml").write_text(COURSE)
    return tmp_path


@pytest.fixture
def decide(course_folder: Path) -> Decide:
    """Return a function that writes these rows to overrides.yaml and reads the decisions.

    The first row is in line 2, after a comment. The roster is `MEMBERS`.
    """

    def read(*rows: str) -> Decisions:
        text = "# mine\n" + "".join(f"- {{{row}}}\n" for row in rows)
        (course_folder / NAME).write_text(text, encoding="utf-8")
        return Decisions.of_course(load_course(course_folder), MEMBERS)

    return read


def result_of_ada(handed_in: str = "", late: bool = False) -> Result:
    """Return a result with 3 of 4 points for "mean" and 6 of 6 for "median".

    handed_in: the time of the submission, in Berlin's time zone; "" is an unknown time.
    late: whether the platform marks the submission as late.
    """
    mean = make.exercise("mean", make.check("shape", 1), make.check("values", 2, 3))
    median = make.exercise("median", make.check("all", 6, 6))
    time = moment(handed_in, BERLIN) if handed_in else None
    hand_in = HandedIn(source="Canvas", time=time, late=late) if handed_in or late else None
    return make.result("ada", mean, median, handed_in=hand_in)
