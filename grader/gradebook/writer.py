"""Scores and comments into nbgrader's database, through its API: SQLite, PostgreSQL, whatever its URL names.

One writer. All of one student's scores are one transaction: a run that is killed leaves
whole students only, and the next run completes the rest. Writing twice changes nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import TracebackType
from typing import Self

from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..course import Assignment, Course
from ..errors import CourseFault
from ..result import ExerciseResult, Result
from .cells import NotebookCells, notebook_cells
from .words import comment


class GradebookError(CourseFault):
    """The database cannot be used. The text ends with what to do next."""


class GradebookWriter:
    """Use as a context manager."""

    def __init__(self, course: Course, url: str) -> None:
        """Open the database and make sure that every assignment's cells are in it. Raises GradebookError."""
        self._course = course
        self._cells: dict[tuple[str, str], NotebookCells] = {}
        try:
            self._gradebook = _open(url)
            for assignment in course.assignments:
                self._prepare(assignment)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            problem = str(error).splitlines()[0][:200]
            raise GradebookError(f"the gradebook cannot be opened ({problem}). Next: check --gradebook's URL") from None

    def write(self, result: Result) -> None:
        """Enter a result. Scores that an instructor has entered by hand stay. Raises GradebookError."""
        try:
            self._gradebook.update_or_create_student(result.student)
            with warnings.catch_warnings():  # nbgrader builds the row before it adds it; SQLAlchemy grumbles
                warnings.simplefilter("ignore", SAWarning)
                self._gradebook.update_or_create_submission(result.assignment, result.student)
            for exercise in result.exercises:
                self._enter(result, exercise)
            self._gradebook.db.commit()
        except SQLAlchemyError as error:
            self._gradebook.db.rollback()
            problem = str(error).splitlines()[0][:200]
            raise GradebookError(
                f"{result.student}'s scores were not written ({problem}). Next: run the same command again"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._gradebook.close()

    def _enter(self, result: Result, exercise: ExerciseResult) -> None:
        cells = self._cells[result.assignment, exercise.id]
        where = (cells.notebook, result.assignment, result.student)
        for cell in cells.graded:
            grade = self._gradebook.find_grade(cell.grade_id, *where)
            grade.auto_score = cell.score(exercise)
            if grade.manual_score is None:
                grade.needs_manual_grade = False
        for i, name in enumerate(cells.solutions):
            said = self._gradebook.find_comment(name, *where)
            said.auto_comment = comment(exercise, result.isolation) if i == 0 else None

    def _prepare(self, assignment: Assignment) -> None:
        book = self._gradebook
        book.update_or_create_assignment(assignment.id)
        for exercise in assignment.exercises:
            cells = notebook_cells(self._course, assignment, exercise)
            self._cells[assignment.id, exercise.id] = cells
            where = (cells.notebook, assignment.id)
            book.update_or_create_notebook(*where)
            for cell in cells.graded:
                book.update_or_create_grade_cell(cell.grade_id, *where, max_score=cell.points, cell_type="code")
                self._source(cell.grade_id, where, cell.source, locked=True)
            for name in cells.solutions:
                book.update_or_create_solution_cell(name, *where)
            for name, source in cells.locked:
                self._source(name, where, source, locked=True)

    def _source(self, name: str, where: tuple[str, str], source: str, *, locked: bool) -> None:
        """nbgrader's own entry, where `nbgrader generate_assignment` has made one, is left alone."""
        try:
            self._gradebook.find_source_cell(name, *where)
        except MissingEntry:
            self._gradebook.update_or_create_source_cell(name, *where, cell_type="code", locked=locked, source=source)


def _open(url: str) -> Gradebook:
    """nbgrader asks for the command `alembic` by name: let it find the one that is installed beside us."""
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        return Gradebook(url)
    finally:
        os.environ["PATH"] = path
