"""`nbgrader autograde` in the box: preprocessors that replace nbgrader's execution of the notebook.

`BoxGrade` reads the student's file as data, grades it as `course grade` does, and writes
the outcome of each autograded cell as a cell output, which nbgrader's own SaveAutoGrades
reads as points. `SaveComments` writes the same comment as `course grade --gradebook`.
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
from .decide import Decide
from .words import comment, group_report

LEVEL = Level.NAMESPACES
RESULT = "manyheads"  # the key of a result in nbconvert's resources

Resources = dict[str, Any]


@dataclass(frozen=True)
class Grading:
    """The judge of one command, and the folder of submitted files."""

    course: Course
    judge: Judge
    submitted: Path
    decide: Decide | None = None


_grading: list[Grading] = []  # of the running command: nbconvert constructs preprocessors without arguments of ours


@contextmanager
def grading(course: Course, submitted: Path, decide: Decide | None = None) -> Iterator[Grading]:
    """Open and prove one warm box for the whole command. decide: where anything is decided. Raises CourseFault."""
    with ExitStack() as stack:
        box = stack.enter_context(open_box(LEVEL, course.limits.for_worker(), course.root))
        prove(box, course)
        judge = Judge(course, box, Settings(course_secret(course.root)))
        _grading.append(Grading(course, judge, submitted, decide))
        try:
            yield _grading[-1]
        finally:
            _grading.pop()


class BoxGrade(NbGraderPreprocessor):  # type: ignore[misc]
    """Grades the submitted file in the box, in place of executing the notebook."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the outcomes into the autograded cells."""
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
    """Writes the comment on the student's first cell: evidence, diagnosis, hint. Manual comments are kept."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the comment into nbgrader's database."""
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


class EnterDecisions(NbGraderPreprocessor):  # type: ignore[misc]
    """Makes of a student's scores in the database what counts: dates and decisions apply as in `course grade`."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Enter what counts of the student's notebooks that are graded so far."""
        decide, student = _grading[-1].decide, str(resources["nbgrader"]["student"])
        if decide is not None:
            decide.enter(student, resources[RESULT], LEVEL)
        return nb, resources


def _exercise_of(resources: Resources) -> Exercise:
    about = resources["nbgrader"]
    for exercise in _grading[-1].course.exercises:
        if (exercise.assignment.id, exercise.stem) == (about["assignment"], about["notebook"]):
            return exercise
    raise LookupError(f"{about['notebook']} is no exercise of course.yaml. Next: course release")
