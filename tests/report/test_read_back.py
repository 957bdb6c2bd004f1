"""Every export, read back by the other side's own rules, which are written here anew, for names that mean harm."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.report.class_view import ClassList, ClassView
from manyheads.report.exports import FORMATS, gradescope_files
from manyheads.report.labels import Labels
from manyheads.result import Outcome, Result
from manyheads.submission.roster import Roster, Student
from tests import make

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe63"
FORMULAS = [
    f"{blank}{sign}1+1"
    for blank in ("", " ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\t", "\r", "\x00")
    for sign in SIGNS
]
INNER = ["ada;=1+1", "ada\t=1+1", 'ada";=1+1', "ada;\u00a0@x", "ada|+1", "ada,=1+1", "ada\n=1+1", "ada;;-1"]
PLAIN = ["Ada", "ada", "ADA", "e\u0301", "\u00e9", "Ben-Gurion, O'Neil =x", 'Jo "Q" Doe', "x" * 120, "report", "..", "CON",
         "nul.txt", "a.", "\u202eada", "Points Possible", "    Points Possible", "Muted", "Student", "ID", "12", "007",
         "<b>ada</b>", "student", "-",  "Zoë Ødegård; Dr.", "a\\b", "ada [1]", "results.json"]  # fmt: skip
NAMES = [*FORMULAS, *INNER, *PLAIN]
TITLES = {"sums": "Adding up", "means": "Final Points of the middle", "maxima": "Adding Up", "two": "Homework (2)"}
LABELS = Labels(TITLES, {f"{id_}_1": ("01", f"The {id_}") for id_ in TITLES})


def score_of(name: str, assignment: str) -> float:
    return NAMES.index(name) + list(TITLES).index(assignment) / 4


def graded(name: str, assignment: str, outcome: Outcome = "failed") -> Result:
    check = make.check("c", score_of(name, assignment), 1000, outcome, title="has the values", evidence=name)
    return make.result(name, make.exercise(f"{assignment}_1", check), assignment=assignment)


CLASS = [graded(name, assignment) for name in NAMES for assignment in ("means", "sums", "two", "maxima")]
ROSTER = Roster(
    tuple(
        Student(name, name=name, section=name, email=f"s{i}@example.org", login=f"login{i}", sis_id=f"S{i}", canvas_id=str(900 + i))
        for i, name in enumerate(NAMES)
    )
)  # fmt: skip


def exported(format_: str, members: ClassList) -> str:
    return FORMATS[format_](ClassView(CLASS, members, LABELS))


ROSTERS = [pytest.param(ClassList(ROSTER), id="with a roster"), pytest.param(ClassList(), id="without one")]


def cells_in(text: str) -> Iterator[str]:
    """Every cell that a spreadsheet of any country may make of it: a quote that does not begin a cell is a letter like any other."""
    for separator in ",;\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            yield from row


def is_formula(cell: str) -> bool:
    """Whether it begins with a sign of a formula: as it is, behind blanks and what cannot be seen, or full-width."""
    seen = [letter for letter in cell if unicodedata.category(letter)[0] not in "CZ"]
    return bool(seen) and seen[0] in SIGNS and cell.strip() != "-" and not re.fullmatch(r"-?[\d.]+", cell)


@pytest.mark.parametrize("members", ROSTERS)
@pytest.mark.parametrize("format_", ["csv", "canvas", "moodle"])
def test_a_spreadsheet_finds_no_formula_whatever_separates_its_cells(format_: str, members: ClassList) -> None:
    text = exported(format_, members)
    assert [cell for cell in cells_in(text) if is_formula(cell)] == []


def test_what_is_no_formula_is_untouched() -> None:
    shown = {row[0] for row in csv.reader(io.StringIO(exported("csv", ClassList()), newline=""))}
    assert {name for name in PLAIN if name != "-"} <= shown


def test_csv_has_everybodys_score(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported("csv", ClassList()), newline="")))
    assert {(as_typed(row["student"]), row["assignment"]): float(row["score"]) for row in rows} == {
        (as_typed(r.student), r.assignment): r.score for r in CLASS
    }
    assert {len(row) for row in rows} == {13}
    assert [*dict.fromkeys(row["assignment_title"] for row in rows)] == list(TITLES.values())


def as_typed(name: str) -> str:
    """A name as somebody reads it in the spreadsheet, where the quote that makes it text does not show."""
    return re.sub(r"(^|(?<=[;\t|]))'", "", re.sub(r"[\r\n]", " ", name))


COMPUTED = re.compile("Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|Override ")


def as_canvas_reads(text: str, find: Callable[[list[str]], str | None]) -> dict[str, dict[str, str]]:
    """Whose grade lib/gradebook_importer.rb takes for which assignment. find: whose row it is, by ID, SIS User ID, SIS Login ID or name."""
    first = text.splitlines()[:3]
    semicolons, commas = ({len(next(csv.reader([line], delimiter=sign), [])) for line in first} for sign in (";", ","))
    assert not (len(semicolons) == 1 and min(semicolons) > min(commas)), "it would be read as separated by semicolons"
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if "".join(row).strip("; ,")]
    assert len(header) > 3
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2])
    assert re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4]
    columns = {place: title for place, title in enumerate(header) if place > 4 and not COMPUTED.search(title)}
    assert len(columns) == len(header) - 5, "a column is passed over"
    assert not [title for title in columns.values() if re.search(r"\(\d+\)\s*$", title)], "it is taken for an id"
    assert len({title.casefold() for title in columns.values()}) == len(columns)
    found: dict[str, dict[str, str]] = {}
    points = 0
    for row in rows:
        if "Points Possible" in row[0]:
            points += 1
            assert {row[place] for place in columns} == {"1000"}, "a student changes the points"
        elif any(not re.fullmatch(r"(?i)\s*(Muted|Manual Posting.*)?\s*", cell) for cell in row):
            who = find(row)
            assert who is not None, row
            assert who not in found, row
            found[who] = {title: row[place].strip() for place, title in columns.items()}
    assert points == 1
    return found


CANVAS_TITLES = {
    "sums": "Adding up [sums]",
    "means": "means",
    "maxima": "Adding Up [maxima]",
    "two": "Homework (2) [two]",
}


def test_canvas_gives_everybody_the_own_scores() -> None:
    known = {student.canvas_id: student.id for student in ROSTER.students}
    found = as_canvas_reads(exported("canvas", ClassList(ROSTER)), lambda row: known.get(row[1]))
    assert found == {
        name: {title: f"{score_of(name, id_):.10g}" for id_, title in CANVAS_TITLES.items()} for name in NAMES
    }


def test_without_a_roster_canvas_finds_the_login_or_nobody() -> None:
    every = [result for result in CLASS if "\r" not in result.student]  # which no folder's name has
    known = {as_typed(result.student): result.student for result in every}
    found = as_canvas_reads(FORMATS["canvas"](ClassView(every, labels=LABELS)), lambda row: known.get(as_typed(row[3])))
    assert {name: float(scores["means"]) for name, scores in found.items()} == {
        name: score_of(name, "means") for name in known.values()
    }


@pytest.mark.parametrize(
    ("column", "field"), [("Username", "login"), ("ID number", "sis_id"), ("Email address", "email")]
)
def test_moodle_gives_everybody_the_own_scores(column: str, field: str) -> None:
    """As in grade/import/csv/classes/load_data.php: the instructor says which column identifies, and which is whose grade."""
    header, *rows = csv.reader(io.StringIO(exported("moodle", ClassList(ROSTER)), newline=""))
    header = [title.strip() for title in header]
    assert len(set(header)) == len(header) == 3 + len(TITLES)
    assert {len(row) for row in rows} == {len(header)}
    users = {getattr(student, field): student.id for student in ROSTER.students}
    grades = {users[row[header.index(column)]]: row for row in rows}
    assert len(grades) == len(rows) == len(NAMES)
    for name, row in grades.items():
        values = [None if cell in ("", "-") else float(cell) for cell in row[3:]]
        assert values == [score_of(name, id_) for id_ in TITLES]


FORMS = {"text", "html", "simple_format", "md", "ansi"}
WHENS = {"hidden", "after_due_date", "after_published", "visible"}


def as_gradescope_reads(text: str) -> tuple[float, list[tuple[str, float, float]]]:
    """The score of a submission, and of each of its tests, by the specification of autograders."""
    data = json.loads(text)
    assert set(data) <= {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format",
                         "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"}  # fmt: skip
    assert {data.get("output_format", "text")} <= FORMS
    assert {data.get("visibility", "visible"), data.get("stdout_visibility", "hidden")} <= WHENS
    tests = []
    for test in data["tests"]:
        assert set(test) <= {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format",
                             "tags", "visibility", "extra_data"}  # fmt: skip
        assert test["status"] in ("passed", "failed")
        assert {test["output_format"], test["name_format"]} <= FORMS
        assert isinstance(test["number"], str)
        assert 0 <= test["score"] <= test["max_score"]
        tests.append((test["name"], test["score"], test["max_score"]))
    return data["score"], tests


def test_gradescope_gets_a_file_for_every_submission_on_every_file_system() -> None:
    files = gradescope_files(ClassView(CLASS, labels=LABELS))
    assert len(files) == len(CLASS)
    folded = {unicodedata.normalize("NFC", path.as_posix()).casefold() for path in files}
    assert len(folded) == len(files)
    for path in files:
        assert not path.is_absolute()
        assert not re.search(r'[<>:"|?*\x00-\x1f\\]', path.as_posix())
        assert len(path.parts) == 3
        for part in path.parts[:2]:
            assert part == part.strip().rstrip(".")
            assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", part)
            assert len(part.encode()) <= 255


def test_gradescope_reads_every_score_under_the_exercises_title() -> None:
    for result, text in zip(CLASS, gradescope_files(ClassView(CLASS, labels=LABELS)).values(), strict=True):
        score, tests = as_gradescope_reads(text)
        assert score == result.score
        assert tests == [(f"01 The {result.assignment}: has the values", result.score, 1000)]
