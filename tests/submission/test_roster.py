"""Rosters: CSV files of many platforms and spreadsheets, and the messages about mistakes."""

from pathlib import Path

import pytest

from manyheads.files import CourseFault
from manyheads.submission.roster_and_times import LARGEST, Roster, Student, read_roster
from tests.make import cases


def roster_from(tmp_path: Path, text: str | bytes) -> Roster:
    """Write a roster with this text, and read it."""
    path = tmp_path / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_roster(path)


CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (77)
    Points Possible,,,,,10
"Lovelace, Ada",12,S100,al1,Maths A,
"Hopper, Bela",13,S101,,Maths A and Maths B,3
"Student, Test",99,,b0a1,Maths A,
"""
LOVELACE = Student("al1", "Lovelace, Ada", "Maths A", login="al1", sis_id="S100", canvas_id="12")
HOPPER = Student("S101", "Hopper, Bela", "Maths A and Maths B", sis_id="S101", canvas_id="13")


ADA = Student("ada", name="Ada Lovelace", canvas_id="12")
CANVAS_WITH_TABS = CANVAS.replace(", ", "~").replace(",", "\t").replace("~", ", ")


@cases(
    "text, students",
    {
        "plain": ("id,name,Canvas ID\nada,Ada Lovelace,12\n", [ADA]),
        "semicolons": ("\ufeffid;name;canvas_id\r\nada; Ada Lovelace ;12\r\n\r\n;;\r\n", [ADA]),
        "another order": ('canvas_id,Notes,ID,name\n12,"a, b",ada,Ada Lovelace\n', [ADA]),
        "Canvas' gradebook": (CANVAS, [LOVELACE, HOPPER]),
        "tabs": (CANVAS_WITH_TABS.encode("utf-16"), [LOVELACE, HOPPER]),
        "a BOM and CRLF": (CANVAS.replace("\n", "\r\n").encode("utf-8-sig"), [LOVELACE, HOPPER]),
        "Moodle's participants": (
            '"First name",Surname,"Email address",Groups,Roles\n'
            "Ada,Lovelace,ada@x.org,A,Student\nTom,T,t@x.org,,Teacher\n",
            [Student("ada@x.org", "Ada Lovelace", "A", "ada@x.org")],
        ),
        "Moodle's grades": (
            "First name;Last name;ID number;Email address;Assignment: Homework\n"
            "Ada;Lovelace;S100;ada@x.org;-\n",
            [Student("S100", "Ada Lovelace", email="ada@x.org", sis_id="S100")],
        ),
        "Gradescope's roster": (
            "Name,SID,Email,Role,Sections\nAda Lovelace,S100,ada@x.org,Student,A\n"
            "Ta Ta,S9,t@x.org,TA,\n",
            [Student("S100", "Ada Lovelace", "A", "ada@x.org", sis_id="S100")],
        ),
        "Brightspace's grades": (
            "OrgDefinedId,Username,Last Name,First Name,End-of-Line Indicator\n"
            "#23304308,#al1,Lovelace,Ada,#\n",
            [Student("al1", "Ada Lovelace", login="al1", sis_id="23304308")],
        ),
        "GitHub Classroom's roster": (
            '"identifier","github_username","github_id","name"\n"ada","ada-l","5",""\n',
            [Student("ada", github="ada-l")],
        ),
    },
)
def test_rosters_of_platforms_and_spreadsheets_are_read(tmp_path, text, students):
    assert [*roster_from(tmp_path, text).students] == students


@cases(
    "text, line",
    {
        "never closed": ('id,name\nada,"Ada\nbela,Bela\nchen,Chen\n', 2),
        "closed by the next one": ('id,name\nada,Ada\nbela,"Bela\nchen,"Chen"\n', 3),
        "closed where another one ends": (
            'id,name,section\nada,"Ada\nbela,Bela",A\nchen,Chen,B\n',
            2,
        ),
        "in the last line": ('id,name\nada,Ada\nbela,"Bela\n', 3),
        "in the heading": ('id,"name\nada,Ada\n', 1),
        "in a note beside one column": ('id,Notes\nada,"late\nbela,ill"\n', 2),
    },
)
def test_an_unclosed_quote_is_refused_with_its_line(tmp_path, text, line):
    with pytest.raises(CourseFault) as raised:
        roster_from(tmp_path, text)
    reason = (
        "a quote that opens in this line is not closed in it, or something stands behind "
        "where it is closed"
    )
    assert f"roster.csv:{line}: {reason}. Next: mend " in str(raised.value)


@cases(
    "heading, column_names",
    {
        "German": ("Matrikelnummer;Nachname;Vorname", "'Matrikelnummer', 'Nachname', 'Vorname'"),
        "with an invisible character": ("Na\u202eme,学号", r"'Na\u202eme', '学号'"),
        "twelve of many": (
            ",".join("abcdefghijklm"),
            ", ".join(f"'{name}'" for name in "abcdefghijkl"),
        ),
    },
)
def test_a_roster_without_an_id_column_is_refused_with_its_columns(tmp_path, heading, column_names):
    with pytest.raises(CourseFault) as raised:
        roster_from(tmp_path, f"{heading}\n1,2,3\n")
    assert (
        f"has no column `id`; its columns are {column_names}. Its first line names its columns: id"
        in str(raised.value)
    )


def test_a_missing_roster_is_an_error_with_a_next_step(tmp_path):
    """The message mentions course.yaml first, because `nbgrader autograde` has no --roster."""
    with pytest.raises(CourseFault) as raised:
        read_roster(tmp_path / "class.csv")
    assert str(raised.value) == (
        f"{tmp_path / 'class.csv'} cannot be read (No such file or directory). "
        "Next: put it there, or give another in course.yaml (roster: FILE) or by --roster"
    )


def test_a_line_break_in_an_unused_column_is_allowed(tmp_path):
    text = 'id,Notes,name\nada,"late\nagain",Ada\nbela,,Bela\n'
    assert [student.name for student in roster_from(tmp_path, text).students] == ["Ada", "Bela"]


def test_the_roster_reports_how_its_columns_were_read(tmp_path):
    roster = roster_from(tmp_path, CANVAS)
    assert roster.unread == ("Homework 1 (77)",)
    assert roster.knows_nobody(["x", "y", "z", "w"]) == (
        "nobody of 4 who handed in ('x', 'y', 'z' …) is on the roster, "
        f"{tmp_path / 'roster.csv'}, of which these columns are read: 'Student' as name, 'ID' as "
        "canvas_id, 'SIS User ID' as sis_id, 'SIS Login ID' as login, 'Section' as section"
    )
    assert "('x', 'y', 'z') is on the roster" in roster.knows_nobody(["x", "y", "z"])


@cases(
    "text, message",
    {
        "no id": ("name\nAda\n", "has no column `id`"),
        "empty": ("", "has no column `id`"),
        "a slash": ("id\na/b\n", r":2: 'a/b' cannot be a folder's name"),
        "no id for one": ("id,name\n,Ada\n", r":2: '' cannot be a folder's name"),
        "ids that differ only in case": ("id\nada\nAda\n", r":3: id 'Ada' stands in line 2, too"),
        "ids that differ only in Unicode form": (
            "id\nZo\u00eb\nZoe\u0308\n",
            r":3: id .* stands in line 2, too",
        ),
        "one e-mail twice": (
            "id,email\na,x@y.z\nb,x@y.z\n",
            r":3: email 'x@y.z' stands in line 2, too",
        ),
        "Latin-1": (b"id\nZo\xeb\n", r"is not UTF-8\. Next: save it as CSV in UTF-8"),
        "too large": ("id\n\n" + "é" * (LARGEST // 2), r"is larger than \d+ MiB"),
    },
)
def test_a_mistake_in_a_roster_is_reported_with_its_line(tmp_path, text, message):
    with pytest.raises(CourseFault, match=message) as caught:
        roster_from(tmp_path, text)
    assert ". Next: " in str(caught.value)
