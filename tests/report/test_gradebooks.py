"""With a roster, gradebooks get the ids that they find students by, and a row for everybody in the class."""

import csv
import io

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
