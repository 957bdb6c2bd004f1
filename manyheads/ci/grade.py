"""Grade the collected files of one pull request, only in a box at level `namespaces`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ..batch.judge_process import Graded, SteadyJudge
from ..batch.plan import GradePlan
from ..box.names import Device, Level
from ..course import Course
from ..course.secret import course_secret
from ..result import Result
from ..submission import find_submissions
from .collect import Collected
from .started import Started


def grade_collected(
    course: Course, collected: Collected, submitted: Path, device: Device, started: Started
) -> list[Result]:
    """A result for each assignment with an exercise that is started.

    Where a judge dies or a check fails by itself, that exercise is not graded. Raises BoxUnavailable if this machine cannot
    provide the box, GraderFault if nothing can be graded.
    """
    worked_on = {assignment for assignment, _ in started}
    submissions, _ = find_submissions(course, submitted)
    wanted = [s for s in submissions if s.student == collected.student and s.assignment.id in worked_on]
    if not wanted:
        return []  # without starting a box
    plan = GradePlan(course.root, course_secret(course.root), Level.NAMESPACES, device=device)
    with closing(SteadyJudge(plan)) as judge:
        graded = [judge.grade(submission) for submission in wanted]
    _say_faults(graded)
    return [each.result for each in graded]


def _say_faults(graded: Sequence[Graded]) -> None:
    """Write the grader's faults to the job's log, which the instructor can read."""
    for fault in (fault for each in graded for fault in each.faults):
        print(f"course: a fault of the grader's own: {fault}. Next: course verify", file=sys.stderr)
