"""Dates and decisions in `nbgrader autograde`: the function and the writer of `course grade --gradebook`."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..course import Assignment, Course
from ..course.decisions import Decisions
from ..course.final import final
from ..result import ExerciseResult, HandedIn, Result, total_of
from ..submission import find_submissions
from ..submission.to_grade import handed_in
from .nbgrader_writer import GradebookWriter


@dataclass
class Decide:
    """Enters what counts, notebook by notebook: a command that is killed leaves whole notebooks."""

    assignment: Assignment
    decisions: Decisions
    times: dict[str, HandedIn]
    writer: GradebookWriter
    _graded: dict[str, dict[str, ExerciseResult]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, student: str, exercise: ExerciseResult, isolation: str) -> None:
        """Enter the student's exercises that are graded so far: an excuse of one changes what the others mean."""
        graded = self._graded[student]
        graded[exercise.id] = exercise
        exercises = tuple(graded[other.id] for other in self.assignment.exercises if other.id in graded)
        result = Result(
            student=student,
            assignment=self.assignment.id,
            score=total_of(other.score for other in exercises),
            max_score=sum(other.max_score for other in exercises),
            device="cpu",
            isolation=isolation,
            seed=0,
            versions={},
            exercises=exercises,
            handed_in=self.times.get(student),
        )
        self.writer.write(final(result, self.decisions))


@contextmanager
def deciding(
    course: Course, submitted: Path, assignment: Assignment, url: str, log: logging.Logger
) -> Iterator[Decide | None]:
    """Give what enters decisions about this assignment; None where there are none. Raises CourseFault."""
    decisions = Decisions.of_course(course)
    submissions, _ = find_submissions(course, submitted)
    own = [submission for submission in submissions if submission.assignment.id == assignment.id]
    for problem in decisions.of_nobody({each.student for each in own}, {assignment.id}):
        log.warning(problem)
    rows = [row for row in decisions.rows if row.assignment == assignment.id]
    if assignment.id not in decisions.dates and not rows:
        yield None
        return
    times = {each.student: time for each, time in handed_in(submitted, own).items()}
    with GradebookWriter(course, url, [assignment]) as writer:
        yield Decide(assignment, decisions, times, writer)
