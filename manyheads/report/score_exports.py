"""Write scores as CSV, for the gradebooks of Canvas and Moodle, and as Gradescope's JSON.

Canvas' gradebook (canvas-lms, lib/gradebook_importer.rb) needs the columns Student and ID first,
then SIS User ID and SIS Login ID, then Section as the last one before the assignments. Canvas looks
for a student by ID, then by SIS User ID, then by SIS Login ID, then by name. If no student fits, it
creates one. A grade of EX excuses the student from the assignment. A row whose first cell contains
“Points Possible” is about the assignments. Canvas skips a column whose title contains the name of a
computed column, and it reads (12) at the end of a title as its own id. In Moodle (docs.moodle.org,
Grade import) the instructor chooses the column that identifies the user.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..printable_text import visible, visible_line
from ..result import Result
from ..submission.roster_and_times import Student
from .class_summary import (
    NOT_HELD,
    UNEXPLAINED,
    ClassView,
    group_of,
    misconceptions_of,
    not_graded,
    sentences,
)
from .report_content import (
    IDS,
    Labels,
    adjustment_text,
    attempt_words,
    exercise_adjustments,
    file_stems,
)

_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = re.compile(r"([;\t|])")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_POINTS = "    Points Possible"
_NO_POINTS = "Points\u00a0Possible"  # replaces _POINTS in the name of a student
_ENDS_LIKE_AN_ID = re.compile(r"\(\d+\)\s*$")
_OF_CANVAS = re.compile(
    r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)|^\s*(Student|LastName|"
    r"FirstName|ID|SIS User ID|SIS Login ID|Section|Integration ID|Root Account)\s*$"
)
_OF_MOODLE = re.compile(r"^\s*(Username|ID number|Email address)\s*$", re.IGNORECASE)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as CSV, with each value made safe for a spreadsheet by `cell`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([cell(value) for value in row])
    return out.getvalue()


def number(value: float | None) -> str:
    """Return a number with at most ten digits, as gradebooks keep: "4" for 4.0.

    Return "" for None.
    """
    return "" if value is None else f"{value:.10g}"


def cell(value: str) -> str:
    """Return the visible text of a cell, with a quote before text that a spreadsheet would compute.

    Some spreadsheets ignore blanks before the sign, and some accept its full-width form, such as
    ＝ on East Asian keyboards. A spreadsheet that separates cells by another sign than the comma,
    as in most of Europe, begins a new cell within a text. A program that reads line by line would
    begin a new row at a line break.
    """
    value = visible(_LINE_BREAKS.sub(" ", value))
    fragments = _SEPARATORS.split(value)
    for index in range(2, len(fragments), 2):  # the texts after a separator
        if _is_formula(fragments[index]):
            fragments[index] = f"'{fragments[index]}"
    text = "".join(fragments)
    return f"'{text}" if _is_formula(value) or value.startswith("\t") else text


def _is_formula(text: str) -> bool:
    """Return whether the first visible character, in any width, is one of `_FORMULA`."""
    visible = "".join(
        letter
        for letter in text
        if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp")
    )
    return unicodedata.normalize("NFKC", visible[:1]).startswith(_FORMULA)


def to_canvas(view: ClassView) -> str:
    """Return Canvas' gradebook import.

    It has a column for each assignment, a row of points possible, and a row for each student.
    """
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(view, _OF_CANVAS)]
    max_scores = [
        _POINTS,
        *[""] * 4,  # the columns that describe a student
        *(number(assignment.max_score) for assignment in view.assignments),
    ]
    rows = (
        [
            (row.name or row.id).replace(_POINTS.strip(), _NO_POINTS),
            row.canvas_id,
            row.sis_id,
            row.login or row.id,
            row.section,
            *cells,
        ]
        for row, cells in _scores(view, "EX")
    )
    return table([head, max_scores, *rows])


def to_moodle(view: ClassView) -> str:
    """Return Moodle's grade import.

    It has a column for each way to find a student, and a column for each assignment.
    """
    head = ["Username", "ID number", "Email address", *_columns(view, _OF_MOODLE)]
    return table(
        [
            head,
            *([row.login or row.id, row.sis_id, row.email, *cells] for row, cells in _scores(view)),
        ]
    )


def _columns(view: ClassView, reserved: re.Pattern[str]) -> Iterator[str]:
    """Yield the title of each assignment's column.

    If two assignments have the same title, or if a title ends like an id of Canvas, the id follows
    in brackets.

    Args:
        view: The class.
        reserved: Titles with another meaning in that system. The column of an assignment with such
            a title is called by its id.
    """
    folded = [assignment.title.strip().casefold() for assignment in view.assignments]
    for assignment, own_title in zip(view.assignments, folded, strict=True):
        ambiguous = folded.count(own_title) > 1 or _ENDS_LIKE_AN_ID.search(assignment.title)
        if reserved.search(assignment.title):
            yield assignment.id
        else:
            yield f"{assignment.title} [{assignment.id}]" if ambiguous else assignment.title


def _scores(view: ClassView, excused: str = "") -> Iterator[tuple[Student, list[str]]]:
    """Yield each student with the cell of each assignment.

    Students who handed in nothing come last. Their cells are 0 or blank, as the course decides
    (`ClassList.zero`). Students missing from the roster are left out: an import would add students
    who have dropped the course again. An assignment has the same points for every student, so the
    graded part of a partly excused assignment is scaled to the whole. The cell of an assignment
    without a total is blank.

    Args:
        view: The class.
        excused: The cell of an assignment that is excused as a whole.
    """
    scores = dict[tuple[str, str], str]()
    for assignment in view.assignments:
        for result in assignment.results:
            score = excused if result.is_excused else number(result.scaled_score)
            scores[result.student, assignment.id] = score
    members = view.members
    submitters = [
        name for name in view.by_student if name in members.by_name or not members.by_name
    ]
    for name in (*submitters, *members.absent_students(submitters)):
        empty_cell = number(0) if members.zero and name in members.by_name else ""
        yield (
            members.row_of(name),
            [scores.get((name, assignment.id), empty_cell) for assignment in view.assignments],
        )


def to_csv(view: ClassView) -> str:
    """Return CSV with a row for every student and exercise, assignment by assignment.

    The rows have ids for programs and titles for people. A student on the roster who handed in
    nothing also has rows.
    """
    columns = (
        "student assignment exercise score max_score misconceptions isolation decided "
        "assignment_title exercise_title name section group"
    )
    rows: list[Sequence[str]] = [columns.split()]
    for assignment in view.assignments:
        score_of_missing = number(0) if view.members.zero else ""
        missing = [
            _ExerciseCells(column.id, score_of_missing, number(column.max_score))
            for column in assignment.columns
        ]
        for row in assignment.rows:
            student = view.members.row_of(row.student)
            person = ("" if student.name == row.student else student.name, student.section)
            for cells in _exercise_rows(row.result) if row.result else missing:
                titles = (assignment.title, view.labels.exercise(cells.id))
                ids = (row.student, assignment.id)
                rows.append((*ids, *cells[:-1], *titles, *person, cells.group))
    return table(rows)


class _ExerciseCells(NamedTuple):
    """The cells of one exercise, in the order of their columns except for the group."""

    id: str
    score: str
    max_score: str
    misconceptions: str = ""
    isolation: str = ""
    rules: str = ""
    group: str = ""


def _exercise_rows(result: Result) -> Iterator[_ExerciseCells]:
    """Yield the cells of each exercise.

    A gradebook does not hold why an attempt shows no misconception, so the group of such an attempt
    is NOT_HELD.
    """
    for exercise in result.exercises:
        points = (
            ("", "") if exercise.excused else (number(exercise.score), number(exercise.max_score))
        )
        names = " ".join(diagnosed.id for diagnosed in misconceptions_of(exercise))
        rules = "; ".join(
            adjustment_text(adjustment)
            for adjustment in (*result.adjustments, *exercise_adjustments(exercise, result))
        )
        group = group_of(exercise)
        group_cell = NOT_HELD if group == UNEXPLAINED and result.isolation == NOT_HELD else group
        yield _ExerciseCells(exercise.id, *points, names, result.isolation, rules, group_cell)


def gradescope_files(view: ClassView) -> dict[Path, str]:
    """Return the text of results.json for every submission.

    The keys are paths such as STUDENT/ASSIGNMENT/results.json.
    """
    stem_of = file_stems(view.by_student)
    files = {}
    for result in view.results:
        value = gradescope_result(result, view.labels)
        path = Path(stem_of(result.student), result.assignment, "results.json")
        files[path] = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return files


FORMATS = {"csv": to_csv, "canvas": to_canvas, "moodle": to_moodle}
WITHOUT_EXPLANATIONS = ("canvas", "moodle")  # formats that have no cell for an explanation
# For formats without a word for an excuse: the effect, and the instructor's next step there
_WITHOUT_EXCUSES = {
    "moodle": ("Moodle", "its cell is blank. Next: exclude that grade in Moodle's grader report"),
    "gradescope": ("Gradescope", "no score is entered. Next: leave it out where you add up"),
}


def excuses_without_a_word(view: ClassView, format_: str) -> Iterator[str]:
    """Yield a sentence for each assignment that is excused as a whole.

    If the format has a word for an excuse, yield nothing.
    """
    if format_ in _WITHOUT_EXCUSES:
        system, instead = _WITHOUT_EXCUSES[format_]
        for result in (result for result in view.results if result.is_excused):
            title = view.labels.assignment(result.assignment)
            yield (
                f"{result.student}: {title} is excused, and {system} has no word for that: "
                f"{instead}"
            )


def gradescope_result(result: Result, labels: Labels = IDS) -> dict[str, object]:
    """Return Gradescope's results.json of one submission, as a value.

    If an exercise is not graded, or the submission is excused as a whole, the value has no scores:
    Gradescope would add the scores of the tests to a total. Without scores, Gradescope reports that
    the autograder failed, and enters no points.
    """
    numbered = labels.numbers_and_titles([exercise.id for exercise in result.exercises])
    tests = []
    for exercise in result.exercises:
        check_reports = {
            check.id: function
            for function in reversed(attempt_words(exercise).functions)
            for check in function.failed
        }
        for j, check in enumerate(exercise.checks, 1):
            report = check_reports.get(check.id)
            texts = [check.evidence]
            if report:
                texts += [report.says, report.also, report.hint and f"hint: {report.hint}"]
            test = {
                "name": visible_line(f"{labels.exercise(exercise.id)}: {check.title}"),
                "name_format": "text",
                "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
                "score": check.score,
                "max_score": check.max_score,
                "status": "passed" if check.outcome == "passed" else "failed",
                "output": visible("\n".join(filter(None, texts))),
                "output_format": "text",
            }
            tests.append(test)
    notes = [f"{labels.exercise(e.id)}: {e.note}" for e in result.exercises if e.note]
    notes += [*sentences(result, labels), f"isolation: {result.isolation}"]
    if result.score is None or result.is_excused:
        output = [*(f"not graded: {reason}" for reason in not_graded(result, labels)), *notes]
        return {"output": visible("\n".join(output)), "output_format": "text"}
    output_text = visible("\n".join(notes))
    return {
        "score": result.scaled_score,
        "output": output_text,
        "output_format": "text",
        "tests": tests,
    }
