"""Submission times from Moodle's grading worksheet and Canvas' list of submissions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.files import CourseFault
from manyheads.submission import find_submissions
from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.intake_journal import handed_in, read_journal
from manyheads.submission.roster_and_times import Roster, Student, read_times
from tests.make import cases

from .conftest import DANCE, FILE, zip_bytes

# As Moodle 4.5 writes it, with a comment of two lines in the first row.
WORKSHEET = (
    'Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum grade",'
    '"Grade can be changed","Last modified (submission)","Last modified (grade)",'
    '"Feedback comments"\n'
)
ROW = (
    '"Participant {}","{}",S1,ada@example.org,"Submitted for grading - ",,100.00,Yes,"{}",-,'
    '"well, done\nindeed"\n'
)
TEN_ELEVEN = "Friday, 20 November 2026, 10:11 AM"
Times = Callable[..., tuple[Collected, dict[str, str]]]


@pytest.fixture(scope="session")
def course_in_berlin(real_course: Course) -> Course:
    """Return the real course with the time zone Europe/Berlin."""
    return with_zone(real_course, "Europe/Berlin")


def with_zone(course: Course, zone: str | None) -> Course:
    """Return the course with another time zone, or None for no zone."""
    return Course(course.root, course.file.model_copy(update={"time_zone": zone}))


@pytest.fixture
def times_by_student(course_in_berlin: Course, tmp_path: Path) -> Times:
    """Return a function that collects a zip of these files, with lists of times.

    It returns the result, and the time of each student. lists: the texts of the lists.
    """

    def run(
        files: list[str], *lists: str, roster: Roster | None = None
    ) -> tuple[Collected, dict[str, str]]:
        (tmp_path / "hw.zip").write_bytes(zip_bytes(dict.fromkeys(files, DANCE)))
        paths = []
        for number, text in enumerate(lists):
            paths.append(tmp_path / f"list{number}.csv")
            paths[-1].write_text(text, encoding="utf-8-sig")
        out = tmp_path / "submitted"
        collected = collect(
            course_in_berlin,
            [tmp_path / "hw.zip"],
            out,
            roster,
            times=read_times(paths, course_in_berlin),
        )
        by_student = {}
        for submission, moment in handed_in(
            find_submissions(course_in_berlin, out)[0], read_journal(out)
        ).items():
            if moment.time:
                by_student[submission.student] = f"{moment.time:%Y-%m-%dT%H:%M}"
        return collected, by_student

    return run


def moodle_names(*people: tuple[str, int]) -> list[str]:
    """Return Moodle's file names for these people and their participant numbers."""
    return [f"{name}_{number}_assignsubmission_file/{FILE}" for name, number in people]


@cases(
    "date_text, time",
    {
        "English": (TEN_ELEVEN, "2026-11-20T09:11"),
        "American": ("Friday, November 20, 2026, 10:11 AM", "2026-11-20T09:11"),
        "afternoon": ("Friday, 6 November 2026, 9:05 PM", "2026-11-06T20:05"),
        "midnight": ("Sunday, 22 November 2026, 12:05 AM", "2026-11-21T23:05"),
        "noon": ("Sunday, 22 November 2026, 12:05 PM", "2026-11-22T11:05"),
        "24 hours": ("Friday, 20 November 2026, 22:11", "2026-11-20T21:11"),
        "narrow blank": ("20 November 2026, 10:11\u202fAM", "2026-11-20T09:11"),
        "ISO": ("2026-11-20 10:11", "2026-11-20T09:11"),
        "ISO with a zone": ("2026-11-20T10:11:00Z", "2026-11-20T10:11"),
        "German": ("Freitag, 20. November 2026, 10:11", None),
        "which is the month?": ("20/11/2026 10:11", None),
        "no such day": ("Friday, 31 November 2026, 10:11 AM", None),
    },
)
def test_dates_in_a_moodle_worksheet_are_read_or_reported(times_by_student, date_text, time):
    collected, by_student = times_by_student(
        moodle_names(("Ada Lovelace", 123)), WORKSHEET + ROW.format(123, "Ada", date_text)
    )
    assert by_student == ({"Ada Lovelace_123": time} if time else {})
    assert [sentence.partition(" with the time ")[0] for sentence in collected.no_time] == (
        [] if time else ["list0.csv, line 2: 'Participant 123'"]
    )
    assert all("is not read. Next: set your language" in sentence for sentence in collected.no_time)


def test_students_without_a_time_in_the_worksheet_are_reported(times_by_student):
    worksheet = WORKSHEET + ROW.format(123, "Ada", TEN_ELEVEN) + ROW.format(124, "Bela", "-") + "\n"
    collected, by_student = times_by_student(
        moodle_names(("Ada", 123), ("Bela", 124), ("Chen", 9)), worksheet
    )
    assert list(by_student) == ["Ada_123"]
    next_step = "Next: get the list from Moodle again, then the same command again"
    group = "; for a group, with --roster and a file that has its members in a column `group`"
    assert collected.no_time == [
        f"list0.csv has no time of Bela_124. {next_step}",
        f"list0.csv has no time of Chen_9. {next_step}{group}",
    ]


def test_with_blind_marking_times_are_found_by_participant_number(times_by_student):
    worksheet = (
        "Identifier,Status,Last modified (submission)\n"
        f'"Participant 123","Submitted for grading - ","{TEN_ELEVEN}"\n'
    )
    assert times_by_student(moodle_names(("Participant", 123)), worksheet)[1] == {
        "Participant_123": "2026-11-20T09:11"
    }


ROSTER = Roster(
    (
        Student("ada", "Ada Lovelace", group="Red team", email="ada@example.org"),
        Student("ben", "Ben Okri", group="Red team"),
        Student("eve", "Eve Mallory"),
    )
)
ELEVEN_ELEVEN = TEN_ELEVEN.replace("10:11", "11:11")


@cases(
    "rows, time",
    {
        "a member by name": ([(11, "Okri, Ben", TEN_ELEVEN)], "2026-11-20T09:11"),
        "a member by address": ([(11, "A. L.", TEN_ELEVEN)], "2026-11-20T09:11"),
        "the later one": (
            [(11, "A. L.", TEN_ELEVEN), (12, "Ben Okri", ELEVEN_ELEVEN)],
            "2026-11-20T10:11",
        ),
        "a participant with the group's number": ([(7, "Eve Mallory", TEN_ELEVEN)], None),
        "such a member": ([(7, "Ben Okri", TEN_ELEVEN)], "2026-11-20T09:11"),
        "of two of one name none": (
            [(11, "Ben Okri", TEN_ELEVEN), (12, "Ben Okri", ELEVEN_ELEVEN)],
            None,
        ),
    },
)
def test_a_groups_time_is_that_of_its_members(times_by_student, rows, time):
    """Moodle puts the group's number into file names, but participants' numbers into the list."""
    worksheet = WORKSHEET
    for number, name, date_text in rows:
        row = ROW.format(number, name, date_text)
        worksheet += row if name == "A. L." else row.replace("ada@", f"p{number}@")
    files = moodle_names(("Red team", 7), ("Eve Mallory", 9))
    worksheet += ROW.format(9, "Eve Mallory", TEN_ELEVEN).replace("ada@", "eve@")
    collected, by_student = times_by_student(files, worksheet, roster=ROSTER)
    assert by_student.pop("eve") == "2026-11-20T09:11"
    assert by_student == (dict.fromkeys(("ada", "ben"), time) if time else {})
    assert len(collected.no_time) == (time is None)


def test_without_a_roster_a_groups_number_is_not_a_participants(times_by_student):
    worksheet = (
        WORKSHEET + ROW.format(7, "Eve Mallory", TEN_ELEVEN) + ROW.format(9, "Ben Okri", TEN_ELEVEN)
    )
    collected, by_student = times_by_student(
        moodle_names(("Red team", 7), ("Ben Okri", 9)), worksheet
    )
    assert list(by_student) == ["Ben Okri_9"]
    assert collected.no_time[0].startswith("list0.csv has no time of Red team_7. Next: ")


def test_a_worksheet_of_another_assignment_is_reported_once(times_by_student):
    people = moodle_names(("Ada", 123), ("Bela", 124))
    collected, by_student = times_by_student(people, WORKSHEET + ROW.format(7, "Ada", TEN_ELEVEN))
    assert by_student == {}
    assert collected.no_time == [
        "list0.csv has nobody whose files are in the download. Next: give the download as "
        "Moodle gave it, and the list of that very assignment"
    ]


def test_times_are_kept_when_a_download_is_collected_without_the_list(times_by_student):
    people = moodle_names(("Ada", 123))
    assert times_by_student(people)[1] == {}
    by_worksheet = times_by_student(people, WORKSHEET + ROW.format(123, "Ada", TEN_ELEVEN))[1]
    assert by_worksheet == {"Ada_123": "2026-11-20T09:11"}
    assert times_by_student(people)[1] == by_worksheet
    later = times_by_student(
        people, WORKSHEET + ROW.format(123, "Ada", TEN_ELEVEN.replace("10:11", "11:11"))
    )[1]
    assert later == {"Ada_123": "2026-11-20T10:11"}


CANVAS_ROWS = [
    {"user_id": 12345, "submitted_at": "2026-11-20T09:11:12Z", "late": False},
    {"user_id": 12346, "submitted_at": None, "workflow_state": "unsubmitted"},
]


@pytest.mark.parametrize("prefix", ["", "while(1);"])
def test_several_pages_of_canvas_submissions_are_read(times_by_student, prefix):
    second_page = [{"anonymous_id": "x1y2z", "submitted_at": "2026-11-21T17:00:00Z"}]
    files = [f"lovelaceada_12345_678_{FILE}", f"anon_x1y2z_679_{FILE}"]
    lists = [prefix + json.dumps(page) for page in (CANVAS_ROWS, second_page)]
    collected, by_student = times_by_student(files, *lists)
    assert sorted(by_student.values()) == ["2026-11-20T09:11", "2026-11-21T17:00"]
    assert collected.no_time == []


@cases(
    "text, zone, message",
    {
        "a worksheet in German": (
            "ID,Vollständiger Name,Zuletzt geändert (Abgabe)\n",
            "UTC",
            "its columns are 'ID', 'Vollständiger Name', 'Zuletzt geändert (Abgabe)'. Next: set "
            "your language in Moodle to English, and download the worksheet again",
        ),
        "an empty file": ("", "UTC", "its columns are without names"),
        "no zone": (WORKSHEET, None, "name no zone. Next: write that of your Moodle"),
        "deep": ("[" * 100_000, "UTC", "is no list of submissions"),
        "no permission": ('{"errors": []}', "UTC", "is no list of submissions"),
        "an open quote": ('Identifier,"Full\n', "UTC", "a quote that opens"),
    },
)
def test_an_invalid_list_of_times_is_refused_with_a_message(
    course_in_berlin, tmp_path, text, zone, message
):
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    with pytest.raises(CourseFault) as fault:
        read_times([tmp_path / "list.csv"], with_zone(course_in_berlin, zone))
    assert message in str(fault.value)


def test_a_missing_list_of_times_is_an_error_with_a_next_step(course_in_berlin, tmp_path):
    with pytest.raises(CourseFault, match="Next: give --times a file that can be read"):
        read_times([tmp_path / "none.csv"], course_in_berlin)
