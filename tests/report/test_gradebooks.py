"""With a roster, gradebooks get the ids that they find students by, and a row for everybody in the class."""

import csv
import io
import re
import unicodedata

import pytest

from manyheads.report.class_rows import ClassList
from manyheads.report.exports import FORMATS
from manyheads.result import Result
from manyheads.submission.roster import Roster, Student
from tests import make

ADA = Student("ada", "Ada Lovelace", "A", "ada@example.org", "alovelace", "S100", "12345")
BELA = Student("bela", "Bela Bartók", "B", email="bela@example.org")
CLASS = Roster((ADA, BELA))


def graded(student: str, assignment: str = "heads", score: float = 3) -> Result:
    return make.result(student, make.exercise(f"{assignment}_1", score=score, max_score=4), assignment=assignment)


def rows(format_: str, results: list[Result], roster: Roster = CLASS, zero: bool = False) -> list[list[str]]:
    return list(csv.reader(io.StringIO(FORMATS[format_](results, ClassList(roster, zero)))))


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_canvas_gets_its_ids_and_a_row_for_whoever_handed_in_nothing(zero: bool, cell: str) -> None:
    assert rows("canvas", [graded("ada")], zero=zero) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "heads"],
        ["    Points Possible", "", "", "", "", "4"],
        ["Ada Lovelace", "12345", "S100", "alovelace", "A", "3"],
        ["Bela Bartók", "", "", "bela", "B", cell],
    ]


@pytest.mark.parametrize("format_", ["canvas", "moodle"])
def test_who_is_no_longer_on_the_roster_is_in_no_platforms_file(format_: str) -> None:
    results = [graded("ada"), graded("dropped")]
    assert "dropped" not in str(rows(format_, results))
    assert "dropped" in str(rows(format_, results, Roster())), "without a roster everybody is"
    assert "dropped" in str(rows("csv", results))


def test_canvas_importer_takes_the_header() -> None:
    """What lib/gradebook_importer.rb asks of a header row, step by step."""
    header, points, *_ = rows("canvas", [graded("ada"), graded("ada", "tails")])
    assert len(header) > 3
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2])
    assert re.search(r"SIS\s+Login\s+ID", header[3])
    columns = 3 + 2  # name, id and section, and the two of the SIS
    assert "Section" in header[columns - 1]
    assert header[columns:] == ["heads", "tails"]
    assert "Points Possible" in points[0]


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_moodle_gets_three_ways_to_find_a_student(zero: bool, cell: str) -> None:
    assert rows("moodle", [graded("ada")], zero=zero) == [
        ["Username", "ID number", "Email address", "heads"],
        ["alovelace", "S100", "ada@example.org", "3"],
        ["bela", "", "bela@example.org", cell],
    ]


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_csv_has_every_exercise_of_whoever_handed_in_nothing(zero: bool, cell: str) -> None:
    found = rows("csv", [graded("ada"), graded("ada", "tails"), graded("bela", "tails")], zero=zero)
    assert [row[:5] for row in found[1:]] == [
        ["ada", "heads", "heads_1", "3", "4"],
        ["bela", "heads", "heads_1", cell, "4"],
        ["ada", "tails", "tails_1", "3", "4"],
        ["bela", "tails", "tails_1", "3", "4"],
    ]


@pytest.mark.parametrize("format_", ["csv", "canvas", "moodle"])
@pytest.mark.parametrize(
    "name",
    ["=1+2", "+1", "-1", "@x", "\t=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x", "  =1", "\u3000\uff1d1", "\u00a0=1",
     "\u200b=1", "\ufeff@x", "\x00=1", "\ufe63x" if unicodedata.normalize("NFKC", "\ufe63") == "-" else "-x"],
)  # fmt: skip
def test_a_name_is_never_a_formula(format_: str, name: str) -> None:
    roster = Roster((Student("ben", name=name, login=name, email=name, section=name),))
    for results in ([graded(name)], [graded("ben")]):
        cells = [cell for row in rows(format_, results, roster) for cell in row]
        assert name not in cells


def test_a_plain_name_stays_as_it_is() -> None:
    roster = Roster((Student("ben", name="Ben-Gurion, O'Neil =x"),))
    assert rows("canvas", [graded("ben")], roster)[2][0] == "Ben-Gurion, O'Neil =x"
