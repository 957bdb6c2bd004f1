"""`nbgrader autograde`, in the box: preprocessors that stand where nbgrader would run the notebook beside hidden tests.

`RestoreCells` puts deleted autograded cells back. `BoxGrade` takes the student's file as
data, grades it as `course grade` does, and writes each autograded cell's outcome as a
cell output that nbgrader's own SaveAutoGrades reads as points. No kernel is started.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from ..box.level import Level, open_box
from ..box.proof import prove
from ..course import Assignment, Course, Exercise, find_course, load_course
from ..course.secret import course_secret
from ..judge.grade import Judge, Settings
from ..result import ExerciseResult
from .cells import NotebookCells, notebook_cells
from .words import comment, group_report

Resources = dict[str, Any]


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Put back autograded cells that a student deleted, so that every point has its cell."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Append what is missing. nbgrader's OverwriteCells restores what was edited."""
        found = _exercise_of(resources)
        if found is None:
            return nb, resources
        present = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in nb.cells}
        for cell in _cells(*found).graded:
            if cell.grade_id not in present:
                about = {"grade": True, "grade_id": cell.grade_id, "locked": True, "points": cell.points}
                about |= {"schema_version": 3, "solution": False, "task": False}
                nb.cells.append(new_code_cell(cell.source, metadata={"nbgrader": about}))
        return nb, resources


class BoxGrade(NbGraderPreprocessor):  # type: ignore[misc]
    """Grade the submitted file in the box, in place of executing the notebook."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write outcomes into the autograded cells."""
        found = _exercise_of(resources)
        if found is None:
            raise ValueError(f"{resources['nbgrader']['notebook']} is no exercise of course.yaml")
        student = str(resources["nbgrader"]["student"])
        result = self._grade(student, *found)
        graded = {cell.grade_id: cell for cell in _cells(*found).graded}
        first = True
        for cell in nb.cells:
            about = graded.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if about is None:
                continue
            said = group_report(result, about.checks)
            if first:
                said = f"{comment(result, Level.NAMESPACES)}\n\n{said}"
            first = False
            score = new_output("execute_result", {"text/plain": f"{about.score(result):g}"}, execution_count=None)
            cell.outputs = [new_output("stream", name="stdout", text=said), score]
        return nb, resources

    def _grade(self, student: str, assignment: Assignment, exercise: Exercise) -> ExerciseResult:
        directory = CourseDirectory(parent=self)
        folder = Path(directory.format_path(directory.submitted_directory, student, assignment.id))
        return _judge().grade_exercise(student, assignment, exercise, folder)


def place_notebooks(submitted: Path) -> list[Path]:
    """nbgrader sees notebooks only: lay the untouched one beside every .py that has none. The .py counts.

    Returns what was written.
    """
    course = _course()
    written = []
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            stem = assignment.stem(exercise)
            released = course.released(assignment, exercise, ".ipynb")
            for script in submitted.glob(f"*/{assignment.id}/{stem}.py"):
                notebook = script.with_suffix(".ipynb")
                if not notebook.exists():
                    notebook.write_bytes(released.read_bytes())
                    written.append(notebook)
    return written


@cache
def _course() -> Course:
    return load_course(find_course(Path.cwd()))


@cache
def _judge() -> Judge:
    """One warm box for the whole command, proved before the first student."""
    course, resources = _course(), ExitStack()
    atexit.register(resources.close)
    box = resources.enter_context(open_box(Level.NAMESPACES, course.limits.for_worker(), course.root))
    prove(box, course)
    return resources.enter_context(Judge(course, box, Settings(course_secret(course.root))))


def _exercise_of(resources: Resources) -> tuple[Assignment, Exercise] | None:
    about = resources["nbgrader"]
    for assignment in _course().assignments:
        for exercise in assignment.exercises:
            if (assignment.id, assignment.stem(exercise)) == (about["assignment"], about["notebook"]):
                return assignment, exercise
    return None


def _cells(assignment: Assignment, exercise: Exercise) -> NotebookCells:
    return notebook_cells(_course(), assignment, exercise)
