"""`nbgrader autograde` in the box: preprocessors that replace nbgrader's execution of the notebook.

`BoxGrade` reads the student's file as data, has a judge process grade it as `course grade` does, and writes
the outcome of each autograded cell as a cell output, which nbgrader's own SaveAutoGrades
reads as points. `SaveComments` writes the same comment as `course grade --gradebook`.
No kernel is started. Of what the grader itself could not judge, nbgrader gets no score.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from ..batch.judge_process import SteadyJudge
from ..batch.plan import GradePlan
from ..box.names import Level
from ..course import Course, Exercise
from ..course.secret import course_secret
from ..errors import CourseFault
from ..result import ExerciseResult
from ..submission import Submission
from .cells import notebook_cells
from .decide import Decide
from .words import comment, group_report
from .writer import leave_to_a_human

LEVEL = Level.NAMESPACES
RESULT = "manyheads"  # the key of a result in nbconvert's resources

Resources = dict[str, Any]


@dataclass(frozen=True)
class Grading:
    """The judge of one command, and the folder of submitted files.

    faults: what the grader itself failed at. not_graded: student and exercise, where that left no points.
    """

    course: Course
    judge: SteadyJudge
    submitted: Path
    decide: Decide | None = None
    faults: list[str] = field(default_factory=list)
    not_graded: list[str] = field(default_factory=list)

    def grade(self, student: str, exercise: Exercise) -> ExerciseResult:
        """Grade one attempt."""
        folder = self.submitted / student / exercise.assignment.id
        graded = self.judge.grade(Submission(student, exercise.assignment, folder), (exercise.id,))
        (result,) = graded.result.exercises
        self.faults.extend(graded.faults)
        if not result.is_graded:
            self.not_graded.append(f"{student}: {exercise.stem}")
        return result

    def demand_all(self) -> None:
        """Raise CourseFault where something is not graded."""
        if self.not_graded:
            raise CourseFault(
                f"not graded, because the grader itself failed: {', '.join(self.not_graded)}. formgrader shows that they need "
                "a grade by hand. Next: course verify, then the same command again with --force"
            )


_grading: list[Grading] = []  # of the running command: nbconvert constructs preprocessors without arguments of ours


@contextmanager
def grading(course: Course, submitted: Path, decide: Decide | None = None) -> Iterator[Grading]:
    """Start one judge for the whole command. decide: where anything is decided. Raises CourseFault.

    nbgrader grades a student now and another one later, so all of them have the same inputs: those of seed 0.
    """
    with closing(SteadyJudge(GradePlan(course.root, course_secret(course.root), LEVEL))) as judge:
        judge.wait()
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
        result = _grading[-1].grade(str(resources["nbgrader"]["student"]), exercise)
        resources[RESULT] = result
        graded = {cell.grade_id: cell for cell in notebook_cells(exercise).graded}
        for cell in nb.cells:
            about = graded.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if about is not None and about.checks:
                said = new_output("stream", name="stdout", text=group_report(result, about.checks))
                score = new_output("execute_result", {"text/plain": repr(about.score(result))}, execution_count=None)
                cell.outputs = [said, score] if result.is_graded else [said]
        return nb, resources


class SaveScores(SaveAutoGrades):  # type: ignore[misc]
    """Saves nbgrader's scores, but none of what is not graded."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the scores into nbgrader's database."""
        if resources[RESULT].is_graded:
            saved: tuple[NotebookNode, Resources] = super().preprocess(nb, resources)
            return saved
        about, exercise = resources["nbgrader"], _exercise_of(resources)
        with Gradebook(about["db_url"]) as book:
            leave_to_a_human(book, notebook_cells(exercise), exercise.assignment.id, about["student"])
            book.db.commit()
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
