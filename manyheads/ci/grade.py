"""Grade the collected files of one pull request, only in a box at level `namespaces`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..batch.judge_process import Graded, grade, start
from ..batch.plan import GradePlan
from ..box.names import Device, Level
from ..course import Course
from ..course.secret import course_secret
from ..errors import CourseFault
from ..result import Result
from ..submission import find_submissions
from .collect import Collected
from .started import Started


class GradingError(CourseFault):
    """The grader itself failed. The text ends with what to do next."""


def grade_collected(
    course: Course, collected: Collected, submitted: Path, device: Device, started: Started
) -> list[Result]:
    """A result for each assignment with an exercise that is started.

    Raises BoxUnavailable if this machine cannot provide the box, GradingError if the grader failed.
    """
    worked_on = {assignment for assignment, _ in started}
    submissions, _ = find_submissions(course, submitted)
    wanted = [s for s in submissions if s.student == collected.student and s.assignment.id in worked_on]
    if not wanted:
        return []  # without starting a box
    start(GradePlan(course.root, course_secret(course.root), Level.NAMESPACES, device=device))
    return _results([grade(submission) for submission in wanted])


def _results(graded: Sequence[Graded]) -> list[Result]:
    for each in graded:
        for fault in each.faults:
            raise GradingError(f"a fault of the grader's own: {fault}. Next: course verify")
    return [each.result for each in graded]
