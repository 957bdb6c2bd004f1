"""Write results in the formats of other systems: CSV, gradebooks of learning platforms, JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..result import Result
from ..submission.roster import Student
from .class_view import NOT_HELD, UNEXPLAINED, ClassView, group_of, misconceptions_of, not_graded, sentences
from .labels import IDS, Labels, file_stems
from .words import attempt_words, own, told

_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = re.compile(r"([;\t|])")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[cell(value) for value in row] for row in rows])
    return out.getvalue()


def number(value: float | None) -> str:
    """4 for 4.0, with as many digits as a gradebook keeps; a blank where there is no number."""
    return "" if value is None else f"{value:.10g}"


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


def to_canvas(view: ClassView) -> str:
    """Canvas' gradebook import: a column for each assignment, a row of points possible, then a row for each student."""
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(view, _CANVAS)]
    most = [_POINTS, "", "", "", "", *(number(part.max_score) for part in view.parts)]
    rows = (
        [(row.name or row.id).replace(_POINTS.strip(), _NO_POINTS), row.canvas_id, row.sis_id, row.login or row.id, row.section, *cells]
        for row, cells in _scores(view, "EX")
    )  # fmt: skip
    return table([head, most, *rows])


def to_moodle(view: ClassView) -> str:
    """Moodle's grade import: a column for each way to find a student, and one for each assignment."""
    head = ["Username", "ID number", "Email address", *_columns(view, _MOODLE)]
    return table([head, *([row.login or row.id, row.sis_id, row.email, *cells] for row, cells in _scores(view))])


def _columns(view: ClassView, taken: re.Pattern[str]) -> Iterator[str]:
    """Yield what stands above each column: the assignment's title, with its id where the title alone would be ambiguous.

    taken: titles that have another meaning there; of such an assignment it is the id.
    """
    folded = [part.title.strip().casefold() for part in view.parts]
    for part, own_title in zip(view.parts, folded, strict=True):
        ambiguous = folded.count(own_title) > 1 or _ENDS_LIKE_AN_ID.search(part.title)
        yield part.id if taken.search(part.title) else f"{part.title} [{part.id}]" if ambiguous else part.title


def _scores(view: ClassView, excused: str = "") -> Iterator[tuple[Student, list[str]]]:
    """Yield each student, with the cell of each assignment.

    Those who handed in nothing come last, and who is not on the roster is left out: who has dropped the course would be
    entered anew. An assignment has the same points for everybody there: of one that is excused in part, the rest stands for
    the whole. excused: the cell of one that is excused as a whole. The cell of one without a total is blank.
    """
    scores = {
        (result.student, part.id): excused if result.is_excused else number(result.scaled_score)
        for part in view.parts
        for result in part.results
    }
    members = view.members
    present = [name for name in view.present if name in members.by_name or not members.by_name]
    for name in (*present, *members.absent(present)):
        nothing = number(0) if members.zero and name in members.by_name else ""
        yield members.row_of(name), [scores.get((name, part.id), nothing) for part in view.parts]


def to_csv(view: ClassView) -> str:
    """CSV with a row for every student and exercise, assignment by assignment: ids for programs, titles for people."""
    header = ("student", "assignment", "exercise", "score", "max_score", "misconceptions", "isolation", "decided",
              "assignment_title", "exercise_title", "name", "section", "group")  # fmt: skip
    rows: list[Sequence[str]] = [header]
    for part in view.parts:
        nothing = number(0) if view.members.zero else ""
        missing = [(column.id, nothing, number(column.max_score), "", "", "", "") for column in part.columns]
        for row in part.rows:
            known = view.members.row_of(row.student)
            person = ("" if known.name == row.student else known.name, known.section)
            for id_, *cells, group in _found(row.result) if row.result else missing:
                titles = (part.title, view.labels.exercise(id_))
                rows.append((row.student, part.id, id_, *cells, *titles, *person, group))
    return table(rows)


def _found(result: Result) -> Iterator[tuple[str, ...]]:
    """Yield of each exercise what stands in its row. Why it shows no misconception a gradebook does not hold."""
    for exercise in result.exercises:
        points = ("", "") if exercise.excused else (number(exercise.score), number(exercise.max_score))
        names = " ".join(each.id for each in misconceptions_of(exercise))
        rules = "; ".join(told(each) for each in (*result.adjustments, *own(exercise, result)))
        group = group_of(exercise)
        known = NOT_HELD if group == UNEXPLAINED and result.isolation == NOT_HELD else group
        yield exercise.id, *points, names, result.isolation, rules, known


def gradescope_files(view: ClassView) -> dict[Path, str]:
    """Return a results.json for every submission, by its path in a folder."""
    stem_of, files = file_stems(view.present), {}
    for each in view.results:
        value = gradescope_result(each, view.labels)
        path = Path(stem_of(each.student), each.assignment, "results.json")
        files[path] = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return files


FORMATS = {"csv": to_csv, "canvas": to_canvas, "moodle": to_moodle}
TELLS_NOTHING = ("canvas", "moodle")  # formats without a place for words


def gradescope_result(result: Result, labels: Labels = IDS) -> dict[str, object]:
    """Gradescope's results.json of one submission, as a value.

    Of one that is not graded in part it has no score at all, neither its own nor a test's, of which Gradescope would make
    a total: then Gradescope says that the autograder failed, and enters no points.
    """
    numbered, tests = labels.numbered([exercise.id for exercise in result.exercises]), []
    for exercise in result.exercises:
        found = {check.id: each for each in reversed(attempt_words(exercise).functions) for check in each.failed}
        for j, check in enumerate(exercise.checks, 1):
            about = found.get(check.id)
            named = (about.says, about.also, about.hint and f"hint: {about.hint}") if about else ()
            test = {
                "name": f"{labels.exercise(exercise.id)}: {check.title}",
                "name_format": "text",
                "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
                "score": check.score,
                "max_score": check.max_score,
                "status": "passed" if check.outcome == "passed" else "failed",
                "output": "\n".join(filter(None, (check.evidence, *named))),
                "output_format": "text",
            }
            tests.append(test)
    said = [f"{labels.exercise(e.id)}: {e.note}" for e in result.exercises if e.note]
    said += [*sentences(result, labels), f"isolation: {result.isolation}"]
    if result.score is None:
        output = [*(f"not graded: {each}" for each in not_graded(result, labels)), *said]
        return {"output": "\n".join(output), "output_format": "text"}
    return {"score": result.scaled_score, "output": "\n".join(said), "output_format": "text", "tests": tests}
