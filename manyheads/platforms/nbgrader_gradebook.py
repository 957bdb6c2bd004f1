"""Read and write nbgrader's notebooks and its database, through its own API.

Results are written with their final scores. Each student is one transaction, so the entries of a
student are complete even if a run is killed. Writing a result twice changes nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from nbgrader.api import Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Column, DateTime, MetaData, String, Table, delete, insert, select
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..course import Assignment, Course, CourseError, Exercise
from ..course.final_scores import Decisions, Member, dates_of, with_excuses
from ..files import CourseFault
from ..printable_text import visible
from ..report.class_summary import NOT_HELD
from ..report.report_content import (
    adjustment_text,
    attempt_words,
    exercise_adjustments,
    reason_not_graded,
)
from ..result import Adjustment, CheckResult, ExerciseResult, Result, total_of
from ..submission import Source, Submission, read_exercise, read_text, size_limit
from ..submission.read import METADATA_KEY

COURSE_ID = "manyheads"  # the course in nbgrader's database
MOST_POINTS = 1e6  # points of a cell; more, such as infinity, are a typing error
DELETED = "# This cell is not in what was handed in."
WHOLE = "# What was handed in stands in the first of these cells, as a whole."
# four blanks: nbgrader renders comments as Markdown, in which this is literal text
_INDENT = "    "
NO_EXCUSES = (
    "excused from all of it, for which nbgrader has no word: no points are entered, and formgrader "
    "asks for them"
)
_WAITS = "nbgrader's gradebook has no score yet, and formgrader asks for one"
_HAIR = 1e-6  # rounding error of sums of points


# A table of ours in nbgrader's database: the due dates of course.yaml that were entered. The
# instructor has set any other date, by `nbgrader db assignment add --duedate`, and nbgrader then
# computes the penalties.
_ENTERED = Table(
    "manyheads_due_date",
    MetaData(),
    Column("assignment", String(128), primary_key=True),
    Column("duedate", DateTime, nullable=False),
)


@dataclass(frozen=True)
class KnownCell:
    """A released cell that nbgrader tracks.

    It is a solution cell, a locked cell, or an autograded cell. Only the last has points.
    """

    grade_id: str
    source: str
    is_solution: bool
    points: float | None
    checksum: str
    checks: tuple[str, ...]  # the ids of the hidden checks that share its points


@dataclass(frozen=True)
class Released:
    """The released notebook of an exercise.

    Attributes:
        content: all cells.
        cells: the cells that nbgrader tracks, in their order.
    """

    name: str
    kernelspec: Mapping[str, Any]
    content: tuple[Mapping[str, Any], ...]
    cells: tuple[KnownCell, ...]

    @property
    def graded_cells(self) -> tuple[KnownCell, ...]:
        """The cells with points."""
        return tuple(cell for cell in self.cells if cell.points is not None)

    @property
    def solutions(self) -> tuple[KnownCell, ...]:
        """The cells for the student's code. The first one gets the comments."""
        return tuple(cell for cell in self.cells if cell.is_solution)


def read_released(exercise: Exercise) -> Released:
    """Read the released notebook. Raises CourseError if it is missing or damaged."""
    path = exercise.notebook
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        content, kernelspec = notebook["cells"], notebook["metadata"]["kernelspec"]
        cells = tuple(_known_cell(cell) for cell in content if "nbgrader" in cell["metadata"])
        return Released(path.stem, kernelspec, tuple(content), cells)
    except (OSError, ValueError, LookupError):
        raise CourseError(
            f"{path} is missing, or not as it was released. Next: course release"
        ) from None


def _known_cell(cell: Mapping[str, Any]) -> KnownCell:
    metadata = cell["metadata"]["nbgrader"]
    return KnownCell(
        metadata["grade_id"],
        _source(cell),
        bool(metadata["solution"]),
        float(metadata.get("points", 0)) if metadata["grade"] else None,
        str(metadata["checksum"]),
        tuple(cell["metadata"].get(METADATA_KEY, {}).get("checks", ())),
    )


def attempt_notebook(submission: Submission, exercise: Exercise, limit_kib: int) -> str:
    """Return the released notebook with the code of the attempt in its cells, as JSON.

    - A notebook gives each solution cell the code of the cell with the same id. Code of the
      student's own cells follows at the end.
    - A script is written into the first solution cell as a whole.
    - If the attempt is missing or cannot be read, a cell at the top says so, and the stub stays.

    Nothing else of the attempt is copied, because nbgrader trusts a notebook's metadata, and its
    pages render a student's Markdown with the scripts in it.

    Raises:
        CourseError: the released notebook is missing or damaged.
    """
    release = read_released(exercise)
    untouched = None
    if exercise.script.exists():
        untouched = Source("", exercise.script.read_text(encoding="utf-8")).code_digest
    attempt = read_exercise(submission.folder, exercise, untouched, limit_kib)
    cells = [dict(cell) for cell in release.content]
    notice = f"{attempt.name} was not handed in." if attempt.missing else attempt.problem
    if notice:
        cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": notice})
    elif attempt.name.endswith(".ipynb"):
        text = read_text(submission.folder / attempt.name, size_limit(attempt.name, limit_kib))
        _fill_from_notebook(cells, release, json.loads(text))
    else:
        for number, cell in enumerate(_solution_cells(cells)):
            cell["source"] = WHOLE if number else attempt.text
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": release.kernelspec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    written = json.dumps(notebook, indent=1, ensure_ascii=False)
    # JSON may hold half of a surrogate pair, which cannot be written to a file.
    return written.encode(errors="replace").decode() + "\n"


def _solution_cells(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]


def _fill_from_notebook(
    cells: list[dict[str, Any]], release: Released, notebook: Mapping[str, Any]
) -> None:
    """Write the code of a student's notebook into copies of the released cells, and add the rest.

    Args:
        cells: The copies, to which the student's own cells are added.
        release: The released notebook.
        notebook: The student's notebook.
    """
    code_cells = [*_code_cells(notebook)]
    for cell in _solution_cells(cells):
        grade_id = cell["metadata"]["nbgrader"]["grade_id"]
        sources = [source for id_, source in code_cells if id_ == grade_id]
        cell["source"] = "\n".join(sources) if sources else DELETED
    ids = {cell.grade_id for cell in release.cells}
    for id_, source in code_cells:
        if id_ not in ids and source.strip():
            cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
            cells.append(cell | {"source": source})


def _code_cells(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the grade id, or "", and the text of each code cell of a valid notebook."""
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            value: object = cell
            for key in ("metadata", "nbgrader", "grade_id"):
                value = value.get(key) if isinstance(value, dict) else None
            yield value if isinstance(value, str) else "", _source(cell)


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def cell_scores(
    exercise: ExerciseResult, result: Result, cells: Sequence[KnownCell]
) -> list[float]:
    """Return the points of each cell, before a late penalty.

    The penalty is left out because nbgrader stores it for the whole notebook. The cells share these
    points:

    - An excused exercise gets the same share of its points as the other exercises together, because
      nbgrader has no excuses. So nbgrader's total is right.
    - A score that differs from the sum of the checks, such as one set by hand, is divided in
      proportion to the points of the cells.
    - Otherwise each cell gets the points of its checks.
    """
    late = _late_adjustment(exercise)
    score, max_score = late.before if late else exercise.score, exercise.max_score
    is_sum = score is None or abs(score - sum(check.score for check in exercise.checks)) <= _HAIR
    if exercise.excused:
        score, max_score, is_sum = result.score, result.max_score, False
    if score is not None and max_score and not is_sum:
        share = score / max_score
        return [(cell.points or 0.0) * share for cell in cells]
    earned = {check.id: check.score for check in exercise.checks}
    scores = []
    for cell in cells:
        score = sum(earned.get(id_, 0.0) for id_ in cell.checks)
        # A floating-point sum may exceed the points of the cell by a rounding error.
        scores.append(min(cell.points or 0.0, score))
    return scores


def other_points(exercise: ExerciseResult, cells: Sequence[KnownCell]) -> str:
    """Return the id of the first cell whose points differ from those of its checks in the result.

    If only the sums differ, or a check with points is in no cell, return the id of the last cell.
    Return "" if all points are the same.
    """
    worth = {check.id: check.max_score for check in exercise.checks}
    for cell in cells if worth else ():
        if abs(sum(worth.pop(id_, 0.0) for id_ in cell.checks) - (cell.points or 0.0)) > _HAIR:
            return cell.grade_id
    difference = abs(sum(cell.points or 0.0 for cell in cells) - exercise.max_score)
    return cells[-1].grade_id if any(worth.values()) or difference > _HAIR else ""


def late_share(exercise: ExerciseResult) -> float:
    """Return the late penalty as a share of the points, from 0 to 1.

    The share is 0 if the exercise is excused, has no points before the penalty, or was in time.
    """
    late = _late_adjustment(exercise)
    if late is None or not late.before or exercise.excused:
        return 0.0
    return 1 - late.after / late.before


def _late_adjustment(exercise: ExerciseResult) -> Adjustment | None:
    late = (adjustment for adjustment in exercise.adjustments if adjustment.rule == "late")
    return next(late, None)


def comment(result: ExerciseResult, isolation: str, decided: Sequence[Adjustment] = ()) -> str:
    """Return the comment on an attempt: for each function the diagnosis, the evidence and a hint.

    Args:
        result: the result of the exercise.
        isolation: the level of isolation.
        decided: changes of the score by rules or decisions, which come first.
    """
    words = attempt_words(result)
    lines = [*map(adjustment_text, decided)]
    lines += [result.note] if result.note else []
    lines += ["All checks passed."] if words.passed else []
    for function in () if words.passed else words.functions:
        if function.head:
            lines.append(f"{function.mark} {function.head}" if function.name else function.head)
        lines += (
            f"hint: {text}" if line_kind == "hint" else text
            for line_kind, text, _ in function.details
        )
    lines += [f"hint: {words.hint}"] if words.hint else []
    lines.append(f"(isolation: {isolation})")
    return "\n".join(_INDENT + line for text in lines for line in visible(text).splitlines())


def group_report(result: ExerciseResult, cell: KnownCell) -> str:
    """Return a line for each check of a cell, with the evidence if it failed.

    If the exercise is not graded, return a sentence about that.
    """
    if not result.is_graded:
        return f"{reason_not_graded(result)}\n"
    lines = []
    for check in result.checks:
        if check.id in cell.checks:
            mark = "✓" if check.outcome == "passed" else "✗"
            lines.append(f"{mark} {check.title:<60} {check.score:g} / {check.max_score:g}")
            if check.outcome != "passed":
                lines.append(f"    {check.evidence}")
    return "\n".join(lines) + "\n"


def open_gradebook(url: str) -> Gradebook:
    """Open the database of this URL, such as one of SQLite or PostgreSQL.

    The database is created on first use.

    Raises:
        CourseFault: the database cannot be opened.
    """
    url = re.sub(r"^postgres(ql)?(?=://)", "postgresql+psycopg", url)
    path = os.environ.get("PATH", "")
    try:
        # nbgrader starts alembic by its name, and alembic lies beside this Python
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
        return Gradebook(url, COURSE_ID)
    except (SQLAlchemyError, ImportError, ValueError, OSError) as error:
        next_step = "Next: check the URL, such as sqlite:///gradebook.db"
        raise CourseFault(
            f"the gradebook cannot be opened ({_reason(error)}). {next_step}"
        ) from None
    finally:
        os.environ["PATH"] = path


class GradebookWriter:
    """Writes results to a gradebook. Use it as a context manager."""

    def __init__(
        self, course: Course, url: str, assignments: Sequence[Assignment] | None = None
    ) -> None:
        """Open the database, and enter the cells and the due dates of these assignments, or of all.

        Raises:
            CourseFault: the database cannot be opened or written to, or holds submissions with
                other cells; or exercises/ has other points than course.yaml.
            CourseError: a released notebook is missing or damaged.
        """
        self._dates = dates_of(course)
        self._released = dict[tuple[str, str], Released]()
        # assignments with a due date that the instructor has set in nbgrader
        self._has_own_date = set[str]()
        self._book: Gradebook = open_gradebook(url)
        try:
            for assignment in course.assignments if assignments is None else assignments:
                with self._transaction("the gradebook cannot be written to"):
                    self._prepare(assignment)
        except BaseException:
            self._book.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def write(self, result: Result) -> None:
        """Enter the scores, the late penalties and the comments of a result, in one transaction.

        Scores and comments that a person has entered stay. If the instructor has set the due date
        in nbgrader, the penalty for a graded exercise is left to nbgrader.

        Raises:
            CourseFault: the database cannot be written to, or the points of the cells differ from
                those in the result. Nothing of this result is written then.
        """
        with self._transaction(f"{result.student}'s scores were not written"):
            self._book.update_or_create_student(result.student)
            submission = self._book.update_or_create_submission(result.assignment, result.student)
            if result.assignment in self._dates:
                handed_in = result.handed_in.time if result.handed_in is not None else None
                submission.timestamp = None if handed_in is None else _naive(handed_in)
            notebooks = {notebook.name: notebook for notebook in submission.notebooks}
            for exercise in result.exercises:
                release = self._released[result.assignment, exercise.id]
                notebook = notebooks[release.name]
                earned = self._enter_scores(result, exercise, release, notebook)
                if earned is None:
                    notebook.late_submission_penalty = None
                elif result.assignment not in self._has_own_date:
                    notebook.late_submission_penalty = late_share(exercise) * earned
                comments = {entry.name: entry for entry in notebook.comments}
                decided = (*result.adjustments, *exercise_adjustments(exercise, result))
                text = comment(exercise, result.isolation, decided)
                for i, cell in enumerate(release.solutions):
                    comments[cell.grade_id].auto_comment = None if i else text

    def _enter_scores(
        self,
        result: Result,
        exercise: ExerciseResult,
        release: Released,
        notebook: SubmittedNotebook,
    ) -> float | None:
        """Enter the points of an exercise, and return the sum that nbgrader counts.

        If the exercise is not graded, no points are entered, formgrader shows that a person must
        grade it, and None is returned. The same is done if the whole submission is excused, because
        nbgrader has no excuses, and points would count.

        Raises:
            CourseFault: the points of the cells differ from those in the result, or a score in the
                database is no number of points.
        """
        grades = {grade.name: grade for grade in notebook.grades}
        if result.is_excused or (not exercise.is_graded and not exercise.excused):
            for grade in grades.values():
                grade.auto_score, grade.needs_manual_grade = None, grade.manual_score is None
            return None
        if cell_id := other_points(exercise, release.graded_cells):
            problem = (
                f"{release.name}.ipynb in exercises/ has other points than its checks give now "
                f"(cell {cell_id})"
            )
            next_step = "Next: course release, then the same command again"
            raise CourseFault(f"{problem}: nothing of {result.student} was written. {next_step}")
        earned = 0.0
        scores = cell_scores(exercise, result, release.graded_cells)
        for cell, score in zip(release.graded_cells, scores, strict=True):
            grade = grades[cell.grade_id]
            grade.auto_score = score
            _demand_points(result.student, release.name, grade)
            if grade.manual_score is None:
                grade.needs_manual_grade = False
            earned += score if grade.manual_score is None else grade.manual_score
        return earned

    def _prepare(self, assignment: Assignment) -> None:
        """Enter an assignment as `nbgrader generate_assignment` does.

        nbgrader's own commands then work with the assignment.

        Raises:
            CourseFault: the points in exercises/ differ from those in course.yaml, or the database
                holds submissions with other cells.
        """
        self._enter_due_date(assignment)
        for exercise in assignment.exercises:
            release = self._released[assignment.id, exercise.id] = read_released(exercise)
            total = sum(cell.points or 0.0 for cell in release.graded_cells)
            if abs(total - exercise.points) > _HAIR:
                problem = (
                    f"{release.name}.ipynb in exercises/ has {total:g} points, course.yaml says "
                    f"{exercise.points:g}"
                )
                raise CourseFault(
                    f"{problem}: the gradebook stays as it was. Next: course release && course"
                    " verify"
                )
            notebook_key = (release.name, assignment.id)
            kernelspec = json.dumps(release.kernelspec)
            notebook = self._book.update_or_create_notebook(*notebook_key, kernelspec=kernelspec)
            cells = {cell.grade_id for cell in release.cells}
            if notebook.submissions and {cell.name for cell in notebook.source_cells} != cells:
                # The scores of these submissions belong to cells that are no longer there.
                problem = (
                    f"the gradebook holds submissions of another {release.name}, with other "
                    "cells than exercises/ has"
                )
                next_step = (
                    f"with a new database, or nbgrader db assignment remove {assignment.id} --force"
                )
                raise CourseFault(f"{problem}. Next: course grade … --gradebook {next_step}")
            for cell in release.cells:
                cell_key = (cell.grade_id, *notebook_key)
                if cell.points is not None:
                    self._book.update_or_create_grade_cell(
                        *cell_key, max_score=cell.points, cell_type="code"
                    )
                if cell.is_solution:
                    self._book.update_or_create_solution_cell(*cell_key)
                self._book.update_or_create_source_cell(
                    *cell_key,
                    source=cell.source,
                    checksum=cell.checksum,
                    cell_type="code",
                    locked=not cell.is_solution,
                )

    def _enter_due_date(self, assignment: Assignment) -> None:
        """Enter the due date of course.yaml, or remove the date that an earlier run entered.

        If course.yaml has no date, and nbgrader has one that no run entered, note the assignment in
        `_has_own_date`.
        """
        entry = self._book.update_or_create_assignment(assignment.id)
        session = self._book.db
        _ENTERED.create(session.connection(), checkfirst=True)
        is_of_assignment = _ENTERED.c.assignment == assignment.id
        entered = session.execute(
            select(_ENTERED.c.duedate).where(is_of_assignment)
        ).scalar_one_or_none()
        session.execute(delete(_ENTERED).where(is_of_assignment))
        if dates := self._dates.get(assignment.id):
            entry.duedate = _naive(dates.due_date)
            session.execute(
                insert(_ENTERED).values(assignment=assignment.id, duedate=entry.duedate)
            )
        elif entry.duedate is not None and entry.duedate == entered:
            entry.duedate = None
        elif entry.duedate is not None:
            self._has_own_date.add(assignment.id)

    @contextmanager
    def _transaction(self, failed: str) -> Iterator[None]:
        """Make one transaction of all changes in this context.

        nbgrader's API commits after every row, so until the end a commit only flushes. An error
        undoes all changes. An error of the database is raised as CourseFault, with a message that
        begins with `failed`.
        """
        session = self._book.db
        commit, session.commit = session.commit, session.flush
        try:
            with warnings.catch_warnings():
                # nbgrader builds rows before it adds them
                warnings.simplefilter("ignore", SAWarning)
                yield
            commit()
        except (SQLAlchemyError, ValueError) as error:
            session.rollback()
            raise CourseFault(
                f"{failed} ({_reason(error)}). Next: run the same command again"
            ) from None
        except BaseException:
            session.rollback()
            raise
        finally:
            session.commit = commit


def read_gradebook(course: Course, url: str, members: Sequence[Member] = ()) -> list[Result]:
    """Return a result for every submission in the database, ordered by student and assignment.

    The checks of a result are the cells with points. nbgrader has no excuses, so those of
    overrides.yaml are applied. An exercise with a cell that waits for a grade by hand has no score.

    Args:
        course: the course.
        url: the database.
        members: the students on the roster.

    Raises:
        CourseFault: the database is missing, empty or damaged, or a score is no number of points.
    """
    path = url.removeprefix("sqlite:///").partition("?")[0]
    if url.startswith("sqlite:") and not Path(path).is_file():  # opening would create it
        raise CourseFault(f"there is no {path}. Next: course grade SUBMITTED --gradebook {url}")
    with closing(open_gradebook(url)) as book:
        try:
            results = [
                _result(assignment, submission)
                for assignment in course.assignments
                for submission in book.assignment_submissions(assignment.id)
            ]
        except SQLAlchemyError as error:
            raise CourseFault(
                f"the gradebook cannot be read ({_reason(error)}). Next: nbgrader db upgrade"
            ) from None
    if not results:
        raise CourseFault(
            "the gradebook holds no submission. Next: course grade SUBMITTED --gradebook URL"
        )
    decisions = Decisions.of_course(course, members)
    results = [with_excuses(result, decisions) for result in results]
    return sorted(results, key=lambda r: (r.student, r.assignment))


def _result(assignment: Assignment, submission: SubmittedAssignment) -> Result:
    notebooks = {notebook.name: notebook for notebook in submission.notebooks}
    for notebook in notebooks.values():
        for grade in notebook.grades:
            _demand_points(submission.student_id, notebook.name, grade)
    exercises = tuple(
        _exercise(exercise.id, notebooks[exercise.stem])
        for exercise in assignment.exercises
        if exercise.stem in notebooks
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
    comment_text = visible("\n".join(c.comment.strip() for c in comments if c.comment))
    grades = sorted(notebook.grades, key=lambda g: g.name)
    checks = tuple(_check(grade, comment_text) for grade in grades if grade.max_score)
    penalty = notebook.late_submission_penalty or 0.0
    waits = any(map(_waits, notebook.grades))
    score = None if waits else max(0.0, notebook.score - penalty)
    note = f"late: −{penalty:g}" if penalty else ""
    return ExerciseResult(
        id=id_, score=score, max_score=notebook.max_score, checks=checks, note=note
    )


def _check(grade: Grade, comment_text: str) -> CheckResult:
    outcome, evidence = "failed", comment_text
    if _waits(grade):
        outcome, evidence = "skipped", _WAITS
    elif grade.score >= grade.max_score:
        outcome, evidence = "passed", ""
    return CheckResult(
        id=grade.name,
        title=grade.name,
        outcome=outcome,
        score=max(0.0, grade.score),
        max_score=grade.max_score,
        evidence=evidence,
    )


def _waits(grade: Grade) -> bool:
    """Return whether a cell has no score yet, and formgrader asks for one."""
    return bool(grade.needs_manual_grade) and grade.manual_score is None


def _demand_points(student: str, notebook: str, grade: Grade) -> None:
    """Raise CourseFault if a score of a cell is no valid number of points.

    formgrader and SQL accept any value.
    """
    for score_field in ("auto_score", "manual_score", "extra_credit"):
        value = getattr(grade, score_field)
        if value is not None and not (isinstance(value, int | float) and abs(value) <= MOST_POINTS):
            raise CourseFault(
                f"the gradebook's {score_field.replace('_', ' ')} of {student} in {notebook}, cell "
                f"{grade.name}, is {value!a}, which is no number of points. Next: enter another "
                "one in formgrader, then the same command again"
            )


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _naive(moment: datetime) -> datetime:
    """Return the time as nbgrader stores it: in UTC, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)
