"""Write results in the formats of other systems: CSV, gradebooks of learning platforms, JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from ..result import CheckResult, ExerciseResult, Result
from .adjustments import own, sentences, told
from .aggregate import NOT_HELD, UNEXPLAINED, group_of, misconceptions_of
from .class_rows import NOBODY, ClassList, absent_by_assignment, not_graded
from .labels import IDS, Labels, file_stems
from .words import attempt_words

_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = re.compile(r"([;\t|])")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[cell(value) for value in row] for row in rows])
    return out.getvalue()


def number(value: float) -> str:
    """4 for 4.0, with as many digits as a gradebook keeps."""
    return f"{value:.10g}"


def number_or_blank(value: float | None) -> str:
    """Return the same; a blank where there is no number."""
    return "" if value is None else number(value)


def cell(value: str) -> str:
    """Return the text of a cell, with a quote before whatever a spreadsheet would take for a formula.

    Some take blanks before the sign away, and some know its full-width form, as 〃＝〃 on East Asian keyboards. One that
    separates cells by another sign than the comma, as in most of Europe, begins a new cell within a text. A line break
    would begin a new row for whoever reads line by line.
    """
    value = _LINE_BREAKS.sub(" ", value)
    first, *rest = _SEPARATORS.split(value)
    parts = [first] + [f"'{part}" if each % 2 and _is_formula(part) else part for each, part in enumerate(rest)]
    starts = _is_formula(value) or value.startswith("\t")
    return ("'" if starts else "") + "".join(parts)


def _is_formula(text: str) -> bool:
    visible = "".join(letter for letter in text if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp"))
    return unicodedata.normalize("NFKC", visible[:1]).startswith(_FORMULA)


# Results as the gradebooks of learning platforms import them: with the ids that they find students by.
#
# Canvas (canvas-lms, lib/gradebook_importer.rb) wants Student and ID first, then SIS User ID and SIS Login ID, then
# Section last before the assignments. It finds a student by ID, else by SIS User ID, else by SIS Login ID, else by
# name, and makes a new one where none fits. A grade of EX excuses the student from the assignment. A row whose first
# cell has “Points Possible” in it is about the assignments; a column whose title has the name of a computed one in it
# is passed over, and (12) at its end is Canvas' own id. Moodle (docs.moodle.org, Grade import) lets the instructor say
# which column identifies the user: e-mail, ID number or username.

_POINTS, _NO_POINTS = "    Points Possible", "Points\u00a0Possible"
_ENDS_LIKE_AN_ID = re.compile(r"\(\d+\)\s*$")
_CANVAS = re.compile(
    r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)|"
    r"^\s*(Student|LastName|FirstName|ID|SIS User ID|SIS Login ID|Section|Integration ID|Root Account)\s*$"
)
_MOODLE = re.compile(r"^\s*(Username|ID number|Email address)\s*$", re.IGNORECASE)


def to_canvas(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Canvas' gradebook import: a column for each assignment, a row of points possible, then a row for each student."""
    assignments, most = _assignments(results, labels)
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(assignments, labels, _CANVAS)]]
    rows.append([_POINTS, "", "", "", "", *(number(most[a]) for a in assignments)])
    for name, cells in _scores(results, assignments, members, "EX"):
        row = members.row_of(name)
        called = (row.name or row.id).replace(_POINTS.strip(), _NO_POINTS)
        rows.append([called, row.canvas_id, row.sis_id, row.login or row.id, row.section, *cells])
    return table(rows)


def to_moodle(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Moodle's grade import: a column for each way to find a student, and one for each assignment."""
    assignments, _ = _assignments(results, labels)
    rows = [["Username", "ID number", "Email address", *_columns(assignments, labels, _MOODLE)]]
    for name, cells in _scores(results, assignments, members):
        row = members.row_of(name)
        rows.append([row.login or row.id, row.sis_id, row.email, *cells])
    return table(rows)


def _assignments(results: Sequence[Result], labels: Labels) -> tuple[list[str], dict[str, float]]:
    """Return the assignments of which there are results, in the course's order, and the points of each."""
    most = {result.assignment: result.possible for result in results}
    return labels.in_order([*most]), most


def _columns(assignments: Sequence[str], labels: Labels, taken: re.Pattern[str]) -> list[str]:
    """Return what stands above each column: the assignment's title, with its id where the title alone would be ambiguous.

    taken: titles that have another meaning there; of such an assignment it is the id.
    """
    titles = [labels.assignment(id_) for id_ in assignments]
    folded = [title.strip().casefold() for title in titles]
    columns = []
    for id_, title in zip(assignments, titles, strict=True):
        ambiguous = folded.count(title.strip().casefold()) > 1 or _ENDS_LIKE_AN_ID.search(title)
        columns.append(id_ if taken.search(title) else f"{title} [{id_}]" if ambiguous else title)
    return columns


def _scores(
    results: Sequence[Result], assignments: Sequence[str], members: ClassList, excused: str = ""
) -> list[tuple[str, list[str]]]:
    """Return each student, with the cell of each assignment.

    Those who handed in nothing come last, and who is not on the roster is left out: who has dropped the course would be
    entered anew.

    An assignment has the same points for everybody there: of one that is excused in part, the rest stands for the
    whole.
    excused: the cell of one that is excused as a whole. The cell of one without a total is blank.
    """
    scores = {(r.student, r.assignment): excused if r.is_excused else number_or_blank(r.scaled_score) for r in results}
    every = list(dict.fromkeys(result.student for result in results))
    strangers = members.strangers(every)
    present = [name for name in every if name not in strangers]
    known = {student.id for student in members.roster.students} if members.zero else set()
    return [
        (name, [scores.get((name, assignment), number(0) if name in known else "") for assignment in assignments])
        for name in (*present, *members.absent(present))
    ]


def to_csv(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """CSV with a row for every student and exercise, assignment by assignment: ids for programs, titles for people."""
    header = ("student", "assignment", "exercise", "score", "max_score", "misconceptions", "isolation", "decided",
              "assignment_title", "exercise_title", "name", "section", "group")  # fmt: skip
    rows, absent, nothing = [header], absent_by_assignment(results, members), number(0) if members.zero else ""
    for id_, own_results in labels.by_assignment(results):
        rows += [
            (
                *(r.student, id_, e.id),
                *(("", "") if e.excused else (number_or_blank(e.score), number(e.max_score))),
                *(" ".join(d.id for d in misconceptions_of(e)), r.isolation),
                "; ".join(told(each) for each in (*r.adjustments, *own(e, r))),
                *(labels.assignment(id_), labels.exercise(e.id), *_person(members, r.student), _group(e, r)),
            )
            for r in own_results
            for e in r.exercises
        ]
        rows += [
            (
                *(name, id_, e.id),
                *(nothing, number(e.max_score), "", "", ""),
                *(labels.assignment(id_), labels.exercise(e.id), *_person(members, name), ""),
            )
            for name in absent.get(id_, ())
            for e in own_results[-1].exercises
        ]
    return table(rows)


def _group(exercise: ExerciseResult, result: Result) -> str:
    """Return why the attempt shows no misconception, as far as that is known: a gradebook names none."""
    group = group_of(exercise)
    return NOT_HELD if group == UNEXPLAINED and result.isolation == NOT_HELD else group


def _person(members: ClassList, student: str) -> tuple[str, str]:
    """Return the name and the section, as the roster has them."""
    row = members.row_of(student)
    return ("" if row.name == student else row.name), row.section


def to_gradescope(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Gradescope's results.json of the only submission, or of each one by student and assignment.

    Gradescope reads one such file for each submission: see `gradescope_files`.
    """
    found = {f"{r.student}/{r.assignment}": gradescope_result(r, labels) for r in results}
    return _json(next(iter(found.values())) if len(found) == 1 else found)


def gradescope_files(results: Sequence[Result], labels: Labels = IDS) -> dict[Path, str]:
    """Return a results.json for every submission, by its path in a folder."""
    stem_of = file_stems({r.student for r in results})
    return {
        Path(stem_of(r.student), r.assignment, "results.json"): _json(gradescope_result(r, labels)) for r in results
    }


FORMATS: dict[str, Callable[[Sequence[Result], ClassList, Labels], str]] = {
    "csv": to_csv,
    "gradescope": to_gradescope,
    "canvas": to_canvas,
    "moodle": to_moodle,
}


TELLS_NOTHING = ("canvas", "moodle")  # formats without a place for words


def gradescope_result(result: Result, labels: Labels = IDS) -> dict[str, object]:
    """Gradescope's results.json of one submission, as a value.

    Of one that is not graded in part it has no score at all, neither its own nor a test's, of which Gradescope would make
    a total: then Gradescope says that the autograder failed, and enters no points.
    """
    numbered = labels.numbered([exercise.id for exercise in result.exercises])
    tests = [
        {
            "name": f"{labels.exercise(exercise.id)}: {check.title}",
            "name_format": "text",
            "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
            "score": check.score,
            "max_score": check.max_score,
            "status": "passed" if check.outcome == "passed" else "failed",
            "output": "\n".join(text for text in (check.evidence, *_named(exercise, check)) if text),
            "output_format": "text",
        }
        for exercise in result.exercises
        for j, check in enumerate(exercise.checks, 1)
    ]
    said = [f"{labels.exercise(e.id)}: {e.note}" for e in result.exercises if e.note]
    said += [*sentences(result, labels), f"isolation: {result.isolation}"]
    if result.score is None:
        output = [*(f"not graded: {each}" for each in not_graded(result, labels)), *said]
        return {"output": "\n".join(output), "output_format": "text"}
    return {"score": result.scaled_score, "output": "\n".join(said), "output_format": "text", "tests": tests}


def _named(exercise: ExerciseResult, check: CheckResult) -> list[str]:
    if check.outcome == "passed":
        return []
    about = next((f for f in attempt_words(exercise).functions if check in f.failed), None)
    if about is None:
        return []
    return [*filter(None, [about.says, about.also]), *([f"hint: {about.hint}"] if about.hint else [])]


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
