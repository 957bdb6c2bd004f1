"""`nbgrader autograde`, in the box: preprocessors that stand where nbgrader would run the notebook beside hidden tests.

`BoxGrade` takes the student's file as data, grades it as `course grade` does, and writes
each autograded cell's outcome as a cell output that nbgrader's own SaveAutoGrades reads
as points. `SaveComments` leaves the words that `course grade --gradebook` would leave.
No kernel is started.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from ..box.level import Level, open_box
from ..box.proof import prove
from ..course import Course, Exercise
from ..course.secret import course_secret
from ..judge.grade import Judge, Settings
from ..result import ExerciseResult
from .cells import notebook_cells
from .words import comment, group_report

LEVEL = Level.NAMESPACES
RESULT = "manyheads"  # where a result travels in nbconvert's resources

Resources = dict[str, Any]


@dataclass(frozen=True)
class Grading:
    """One command's judge, and where the submitted files are."""

    course: Course
    judge: Judge
    submitted: Path


_grading: list[Grading] = []  # of the command that runs: nbconvert makes preprocessors by their class alone


@contextmanager
def grading(course: Course, submitted: Path) -> Iterator[Grading]:
    """One warm box for the whole command, proved before the first student. Raises CourseFault."""
    with ExitStack() as stack:
        box = stack.enter_context(open_box(LEVEL, course.limits.for_worker(), course.root))
        prove(box, course)
        judge = Judge(course, box, Settings(course_secret(course.root)))
        _grading.append(Grading(course, judge, submitted))
        try:
            yield _grading[-1]
        finally:
            _grading.pop()


class BoxGrade(NbGraderPreprocessor):  # type: ignore[misc]
    """Grade the submitted file in the box, in place of executing the notebook."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write outcomes into the autograded cells."""
        exercise = _exercise_of(resources)
        judge, submitted = _grading[-1].judge, _grading[-1].submitted
        student = str(resources["nbgrader"]["student"])
        folder = submitted / student / exercise.assignment.id
        result = judge.grade_exercise(student, exercise, folder)
        resources[RESULT] = result
        graded = {cell.grade_id: cell for cell in notebook_cells(exercise).graded}
        for cell in nb.cells:
            about = graded.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if about is not None and about.checks:
                said = new_output("stream", name="stdout", text=group_report(result, about.checks))
                score = new_output("execute_result", {"text/plain": repr(about.score(result))}, execution_count=None)
                cell.outputs = [said, score]
        return nb, resources


class SaveComments(NbGraderPreprocessor):  # type: ignore[misc]
    """The comment on the student's first cell: evidence, diagnosis, hint. Comments entered by hand stay."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write it into nbgrader's database."""
        exercise = _exercise_of(resources)
        result: ExerciseResult = resources[RESULT]
        cells = notebook_cells(exercise)
        with Gradebook(resources["nbgrader"]["db_url"]) as book:
            for i, cell in enumerate(cells.solutions):
                student = resources["nbgrader"]["student"]
                said = book.find_comment(cell.grade_id, cells.notebook, exercise.assignment.id, student)
                said.auto_comment = comment(result, LEVEL) if i == 0 else None
            book.db.commit()
        return nb, resources


def _exercise_of(resources: Resources) -> Exercise:
    about = resources["nbgrader"]
    for exercise in _grading[-1].course.exercises:
        if (exercise.assignment.id, exercise.stem) == (about["assignment"], about["notebook"]):
            return exercise
    raise LookupError(f"{about['notebook']} is no exercise of course.yaml. Next: course release")
