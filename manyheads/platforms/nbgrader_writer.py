"""Write scores and comments to nbgrader's database, through its API: results as they count, by dates and decisions.

There is one writer. Each student is one transaction, so a killed run leaves complete
students, and the next run adds the others. Writing twice changes nothing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..course import Assignment, Course, CourseError, Exercise
from ..course.decisions import dates_of
from ..errors import CourseFault
from ..report.adjustments import own
from ..result import ExerciseResult, Result
from ..submission.read import METADATA_KEY
from .nbgrader_database import demand_points, one_transaction, open_gradebook, reason
from .nbgrader_feedback import comment

# Which autograded cell holds which checks: read from the released notebook, which says so in its metadata.


@dataclass(frozen=True)
class KnownCell:
    """A released cell that nbgrader keeps in its database: the student's own, a visible check, or an autograded one."""

    grade_id: str
    source: str
    metadata: Mapping[str, Any]

    @property
    def is_solution(self) -> bool:
        """Whether the student writes here."""
        return bool(self.metadata["nbgrader"]["solution"])

    @property
    def is_graded(self) -> bool:
        """Whether it has points, none of them perhaps."""
        return bool(self.metadata["nbgrader"]["grade"])

    @property
    def points(self) -> float:
        """What it is worth."""
        return float(self.metadata["nbgrader"].get("points", 0))

    @property
    def checksum(self) -> str:
        """The checksum by which nbgrader knows an edited cell."""
        return str(self.metadata["nbgrader"]["checksum"])

    @property
    def checks(self) -> tuple[str, ...]:
        """The ids of the hidden checks that share its points."""
        return tuple(self.metadata.get(METADATA_KEY, {}).get("checks", ()))

    def score(self, result: ExerciseResult) -> float:
        """Return what its checks earned; never more than its points, which floating-point sums may pass by a hair."""
        return min(self.points, sum(check.score for check in result.checks if check.id in self.checks))


@dataclass(frozen=True)
class NotebookCells:
    """The cells of one exercise's notebook that nbgrader keeps, in their order. texts: the lesson's Markdown cells."""

    notebook: str
    kernelspec: str
    cells: tuple[KnownCell, ...]
    texts: frozenset[str] = frozenset()

    @property
    def graded(self) -> tuple[KnownCell, ...]:
        """Those with points."""
        return tuple(cell for cell in self.cells if cell.is_graded)

    @property
    def solutions(self) -> tuple[KnownCell, ...]:
        """Those that the student writes in. Comments stand on the first."""
        return tuple(cell for cell in self.cells if cell.is_solution)


def notebook_cells(exercise: Exercise) -> NotebookCells:
    """Return the cells of a released notebook. Raises CourseError where it is missing."""
    path = exercise.notebook
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        known = tuple(
            KnownCell(cell["metadata"]["nbgrader"]["grade_id"], _source(cell), cell["metadata"])
            for cell in notebook["cells"]
            if "nbgrader" in cell["metadata"]
        )
        texts = frozenset(_source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
        return NotebookCells(path.stem, json.dumps(notebook["metadata"]["kernelspec"]), known, texts)
    except (OSError, ValueError, LookupError):
        raise CourseError(f"{path} is missing, or not as it was released. Next: course release") from None


def _source(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)


# What counts, cell by cell. nbgrader knows points by cell, a penalty by notebook, and no excuse.

_HAIR = 1e-6  # what sums of points differ by


def cell_scores(exercise: ExerciseResult, result: Result, cells: Sequence[KnownCell]) -> list[float]:
    """Return the points of each cell, before a late penalty.

    Where the exercise's score is not its checks' (it was set by hand), cells share it by their points. An exercise
    that is excused has the share of its points that the others have: then nbgrader's total is the same share of all
    points as without it, if there is one.
    """
    before = next((each.before for each in exercise.adjustments if each.rule == "late"), exercise.score)
    own = [cell.score(exercise) for cell in cells]
    if exercise.excused:
        share = result.score / result.max_score if result.score is not None and result.max_score else None
    elif before is not None and abs(before - sum(check.score for check in exercise.checks)) > _HAIR:
        share = before / exercise.max_score if exercise.max_score else None
    else:
        share = None
    return own if share is None else [cell.points * share for cell in cells]


def late_share(exercise: ExerciseResult) -> float:
    """Return the share of the points that being late costs."""
    late = next((adjustment for adjustment in exercise.adjustments if adjustment.rule == "late"), None)
    return 0.0 if late is None or not late.before or exercise.excused else 1 - late.after / late.before


class GradebookWriter:
    """Writes results to a gradebook. Use it as a context manager."""

    def __init__(self, course: Course, url: str, assignments: Sequence[Assignment] | None = None) -> None:
        """Open the database, and enter the cells of these assignments; of every one if none is given.

        Raises CourseFault.
        """
        self._dates = dates_of(course)
        self._cells: dict[tuple[str, str], NotebookCells] = {}
        self._gradebook: Gradebook = open_gradebook(url)
        try:
            for assignment in course.assignments if assignments is None else assignments:
                with one_transaction(self._gradebook):
                    self._prepare(assignment)
        except (SQLAlchemyError, ValueError) as error:
            self._gradebook.close()
            raise CourseFault(
                f"the gradebook cannot be written to ({reason(error)}). Next: run the same command again"
            ) from None
        except BaseException:
            self._gradebook.close()
            raise

    def write(self, result: Result) -> None:
        """Enter a result. Manual scores and comments are kept. Raises CourseFault."""
        try:
            with one_transaction(self._gradebook), warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)  # nbgrader builds rows before it adds them
                self._gradebook.update_or_create_student(result.student)
                submission = self._gradebook.update_or_create_submission(result.assignment, result.student)
                if (
                    result.assignment in self._dates
                    and result.handed_in is not None
                    and result.handed_in.time is not None
                ):
                    submission.timestamp = _naive(result.handed_in.time)
                for exercise in result.exercises:
                    self._enter(result, exercise)
        except (SQLAlchemyError, ValueError) as error:
            raise CourseFault(
                f"{result.student}'s scores were not written ({reason(error)}). Next: run the same command again"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._gradebook.close()

    def _enter(self, result: Result, exercise: ExerciseResult) -> None:
        cells = self._cells[result.assignment, exercise.id]
        where = (cells.notebook, result.assignment, result.student)
        if exercise.is_graded or exercise.excused:
            self._enter_scores(result, exercise, cells)
        else:
            leave_to_a_human(self._gradebook, cells, result.assignment, result.student)
        for i, cell in enumerate(cells.solutions):
            said = self._gradebook.find_comment(cell.grade_id, *where)
            decided = (*result.adjustments, *own(exercise, result))
            said.auto_comment = comment(exercise, result.isolation, decided) if i == 0 else None

    def _enter_scores(self, result: Result, exercise: ExerciseResult, cells: NotebookCells) -> None:
        where = (cells.notebook, result.assignment, result.student)
        earned = 0.0
        for cell, score in zip(cells.graded, cell_scores(exercise, result, cells.graded), strict=True):
            grade = self._gradebook.find_grade(cell.grade_id, *where)
            grade.auto_score = score
            demand_points(result.student, cells.notebook, grade)
            if grade.manual_score is None:
                grade.needs_manual_grade = False
            earned += score if grade.manual_score is None else grade.manual_score
        if result.assignment in self._dates:  # else a penalty is nbgrader's own
            self._gradebook.find_submission_notebook(*where).late_submission_penalty = late_share(exercise) * earned

    def _prepare(self, assignment: Assignment) -> None:
        dates = self._dates.get(assignment.id)
        due = {} if dates is None else {"duedate": _naive(dates.due)}
        self._gradebook.update_or_create_assignment(assignment.id, **due)
        for exercise in assignment.exercises:
            cells = notebook_cells(exercise)
            self._cells[assignment.id, exercise.id] = cells
            where = (cells.notebook, assignment.id)
            self._demand_same_cells(cells, *where)
            self._gradebook.update_or_create_notebook(*where, kernelspec=cells.kernelspec)
            for cell in cells.cells:
                self._enter_cell(cell, *where)

    def _enter_cell(self, cell: KnownCell, notebook: str, assignment: str) -> None:
        """Enter a cell as `nbgrader generate_assignment` does, so that nbgrader's own commands work afterwards."""
        where = (cell.grade_id, notebook, assignment)
        if cell.is_graded:
            self._gradebook.update_or_create_grade_cell(*where, max_score=cell.points, cell_type="code")
        if cell.is_solution:
            self._gradebook.update_or_create_solution_cell(*where)
        self._gradebook.update_or_create_source_cell(
            *where, cell_type="code", locked=not cell.is_solution, source=cell.source, checksum=cell.checksum
        )

    def _demand_same_cells(self, cells: NotebookCells, notebook: str, assignment: str) -> None:
        """Raise CourseFault if there are submissions and the cells differ: scores belong to cells."""
        try:
            found = self._gradebook.find_notebook(notebook, assignment)
        except MissingEntry:
            return
        old = {cell.name for cell in found.source_cells}
        if found.submissions and old != {cell.grade_id for cell in cells.cells}:
            raise CourseFault(
                f"the gradebook holds submissions of another {notebook}, with other cells than exercises/ has. Next: "
                f"course grade … --gradebook with a new database, or nbgrader db assignment remove {assignment} --force"
            )


def leave_to_a_human(book: Gradebook, cells: NotebookCells, assignment: str, student: str) -> None:
    """Enter that an exercise is not graded: its cells have no score, and formgrader shows that they need one by hand."""
    for cell in cells.graded:
        grade = book.find_grade(cell.grade_id, cells.notebook, assignment, student)
        grade.auto_score = None
        grade.needs_manual_grade = grade.manual_score is None
    book.find_submission_notebook(cells.notebook, assignment, student).late_submission_penalty = None


def _naive(moment: datetime) -> datetime:
    """As nbgrader keeps times: in UTC, and not saying so."""
    return moment.astimezone(UTC).replace(tzinfo=None)
