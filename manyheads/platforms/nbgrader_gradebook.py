"""nbgrader's database, through its own API: results as they count are written to it, and read with what is given by hand.

Each student is one transaction, so a killed run leaves complete students, and the next run adds the others. Writing
twice changes nothing.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from nbgrader.api import Grade, Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import make_url
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..course import Assignment, Course
from ..course.decisions import dates_of
from ..errors import CourseFault
from ..report.class_view import NOT_HELD
from ..report.words import own
from ..result import CheckResult, ExerciseResult, Result, total_of
from .nbgrader_cells import Released, cell_scores, comment, late_share, other_points, released

COURSE_ID = "manyheads"  # the course in nbgrader's database
MOST_POINTS = 1e6  # of one cell: infinity and what adds up to it are a slip
_AGAIN = "Next: run the same command again"


def open_gradebook(url: str) -> Gradebook:
    """Open the database, SQLite's, PostgreSQL's or whatever its URL names; it is created on first use. Raises CourseFault."""
    scheme, separator, rest = url.partition("://")
    driver = f"postgresql+psycopg{separator}{rest}" if scheme in ("postgresql", "postgres") else url
    path = os.environ.get("PATH", "")
    try:
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])  # where nbgrader finds alembic
        return Gradebook(driver, COURSE_ID)
    except (SQLAlchemyError, ImportError, ValueError, OSError) as error:
        raise CourseFault(
            f"the gradebook cannot be opened ({_reason(error)}). Next: check the URL, such as sqlite:///gradebook.db"
        ) from None
    finally:
        os.environ["PATH"] = path


class GradebookWriter:
    """Writes results to a gradebook. Use it as a context manager."""

    def __init__(self, course: Course, url: str, assignments: Sequence[Assignment] | None = None) -> None:
        """Open the database, and enter the cells of these assignments; of every one if none is given.

        Raises CourseFault.
        """
        self._dates = dates_of(course)
        self._released = dict[tuple[str, str], Released]()
        self._book: Gradebook = open_gradebook(url)
        try:
            for assignment in course.assignments if assignments is None else assignments:
                with self._writing("the gradebook cannot be written to"):
                    self._prepare(assignment)
        except BaseException:
            self._book.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def write(self, result: Result) -> None:
        """Enter a result. Manual scores and comments are kept.

        Raises CourseFault, also where cells have other points than the result was graded for.
        """
        with self._writing(f"{result.student}'s scores were not written"):
            self._book.update_or_create_student(result.student)
            submission = self._book.update_or_create_submission(result.assignment, result.student)
            dated = result.assignment in self._dates  # else a penalty is nbgrader's own
            if dated and result.handed_in is not None and result.handed_in.time is not None:
                submission.timestamp = _naive(result.handed_in.time)
            notebooks = {notebook.name: notebook for notebook in submission.notebooks}
            for exercise in result.exercises:
                known = self._released[result.assignment, exercise.id]
                notebook = notebooks[known.name]
                earned = self._enter_scores(result, exercise, known, notebook)
                if dated or earned is None:
                    notebook.late_submission_penalty = None if earned is None else late_share(exercise) * earned
                said = {each.name: each for each in notebook.comments}
                decided = (*result.adjustments, *own(exercise, result))
                for i, cell in enumerate(known.solutions):
                    said[cell.grade_id].auto_comment = comment(exercise, result.isolation, decided) if i == 0 else None

    def _enter_scores(
        self, result: Result, exercise: ExerciseResult, known: Released, notebook: SubmittedNotebook
    ) -> float | None:
        """Enter the points, and return what nbgrader counts; where it is not graded, formgrader shows that a human must."""
        grades = {each.name: each for each in notebook.grades}
        if not exercise.is_graded and not exercise.excused:
            for grade in grades.values():
                grade.auto_score, grade.needs_manual_grade = None, grade.manual_score is None
            return None
        if cell_id := other_points(exercise, known.graded):
            raise CourseFault(
                f"{known.name}.ipynb in exercises/ has other points than its checks give now (cell {cell_id}): nothing of "
                f"{result.student} was written. Next: course release, then the same command again"
            )
        earned = 0.0
        for cell, score in zip(known.graded, cell_scores(exercise, result, known.graded), strict=True):
            grade = grades[cell.grade_id]
            grade.auto_score = score
            _demand_points(result.student, known.name, grade)
            if grade.manual_score is None:
                grade.needs_manual_grade = False
            earned += score if grade.manual_score is None else grade.manual_score
        return earned

    def _prepare(self, assignment: Assignment) -> None:
        """Enter an assignment as `nbgrader generate_assignment` does, so that nbgrader's own commands work afterwards."""
        dates = self._dates.get(assignment.id)
        self._book.update_or_create_assignment(
            assignment.id, **({} if dates is None else {"duedate": _naive(dates.due)})
        )
        for exercise in assignment.exercises:
            known = self._released[assignment.id, exercise.id] = released(exercise)
            where = (known.name, assignment.id)
            self._demand_same_cells(known, *where)
            self._book.update_or_create_notebook(*where, kernelspec=json.dumps(known.kernelspec))
            for cell in known.cells:
                there = (cell.grade_id, *where)
                if cell.points is not None:
                    self._book.update_or_create_grade_cell(*there, max_score=cell.points, cell_type="code")
                if cell.is_solution:
                    self._book.update_or_create_solution_cell(*there)
                about = {"cell_type": "code", "locked": not cell.is_solution}
                self._book.update_or_create_source_cell(*there, source=cell.source, checksum=cell.checksum, **about)

    def _demand_same_cells(self, known: Released, notebook: str, assignment: str) -> None:
        """Raise CourseFault if there are submissions and the cells differ: scores belong to cells."""
        try:
            found = self._book.find_notebook(notebook, assignment)
        except MissingEntry:
            return
        if found.submissions and {cell.name for cell in found.source_cells} != {cell.grade_id for cell in known.cells}:
            raise CourseFault(
                f"the gradebook holds submissions of another {notebook}, with other cells than exercises/ has. Next: "
                f"course grade … --gradebook with a new database, or nbgrader db assignment remove {assignment} --force"
            )

    @contextmanager
    def _writing(self, failed: str) -> Iterator[None]:
        """Make one transaction: nbgrader's API commits after every row, so its commits only flush until the end."""
        session = self._book.db
        commit, session.commit = session.commit, session.flush
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)  # nbgrader builds rows before it adds them
                yield
            commit()
        except (SQLAlchemyError, ValueError) as error:
            session.rollback()
            raise CourseFault(f"{failed} ({_reason(error)}). {_AGAIN}") from None
        except BaseException:
            session.rollback()
            raise
        finally:
            session.commit = commit


def read_gradebook(course: Course, url: str) -> list[Result]:
    """Return a result for every submission of the course's assignments, ordered by student.

    A notebook of which a cell still needs a grade by hand is not graded. Each autograded cell becomes a check, whose
    evidence is the notebook's comment. Raises CourseFault.
    """
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        parsed = None  # of which opening it says what is wrong
    if parsed and parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise CourseFault(f"there is no {parsed.database}. Next: course grade SUBMITTED --gradebook {url}")
    with closing(open_gradebook(url)) as book:
        try:
            every = [(each, found) for each in course.assignments for found in book.assignment_submissions(each.id)]
            results = [_result(assignment, submission) for assignment, submission in every]
        except SQLAlchemyError as error:
            raise CourseFault(f"the gradebook cannot be read ({_reason(error)}). Next: nbgrader db upgrade") from None
    if not results:
        raise CourseFault("the gradebook holds no submission. Next: course grade SUBMITTED --gradebook URL")
    return sorted(results, key=lambda r: (r.student, r.assignment))


def _result(assignment: Assignment, submission: SubmittedAssignment) -> Result:
    notebooks = {notebook.name: notebook for notebook in submission.notebooks}
    for notebook in notebooks.values():
        for grade in notebook.grades:
            _demand_points(submission.student_id, notebook.name, grade)
    exercises = tuple(
        _exercise(each.id, notebooks[each.stem]) for each in assignment.exercises if each.stem in notebooks
    )
    return Result(
        student=submission.student_id,
        assignment=assignment.id,
        score=total_of(e.score for e in exercises),
        max_score=sum(e.max_score for e in exercises),
        device=NOT_HELD,
        isolation=NOT_HELD,
        seed=0,
        versions={},
        exercises=exercises,
    )


def _exercise(id_: str, notebook: SubmittedNotebook) -> ExerciseResult:
    comments = sorted(notebook.comments, key=lambda c: c.name)
    said = "\n".join(c.comment.strip() for c in comments if c.comment)
    checks = tuple(
        CheckResult(
            id=grade.name,
            title=grade.name,
            outcome="passed" if grade.score >= grade.max_score else "failed",
            score=max(0.0, grade.score),
            max_score=grade.max_score,
            evidence="" if grade.score >= grade.max_score else said,
        )
        for grade in sorted(notebook.grades, key=lambda g: g.name)
        if grade.max_score
    )
    penalty = notebook.late_submission_penalty or 0.0
    waits = any(grade.needs_manual_grade and grade.manual_score is None for grade in notebook.grades)
    return ExerciseResult(
        id=id_,
        score=None if waits else max(0.0, notebook.score - penalty),
        max_score=notebook.max_score,
        checks=checks,
        note=f"late: −{penalty:g}" if penalty else "",
    )


def _demand_points(student: str, notebook: str, grade: Grade) -> None:
    """Raise CourseFault where a cell has a score that is no number of points: formgrader and SQL take any."""
    for kind in ("auto_score", "manual_score", "extra_credit"):
        value = getattr(grade, kind)
        if value is not None and not (isinstance(value, int | float) and abs(value) <= MOST_POINTS):
            raise CourseFault(
                f"the gradebook's {kind.replace('_', ' ')} of {student} in {notebook}, cell {grade.name}, is {value!a}, "
                "which is no number of points. Next: enter another one in formgrader, then the same command again"
            )


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _naive(moment: datetime) -> datetime:
    """As nbgrader keeps times: in UTC, and not saying so."""
    return moment.astimezone(UTC).replace(tzinfo=None)
