"""Which folders are submissions, and whose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.submission import find_submissions


def hand_in(submitted: Path, student: str) -> Path:
    folder = submitted / student / "averages"
    folder.mkdir(parents=True)
    return folder


def students(course: Course, submitted: Path) -> list[str]:
    return [submission.student for submission in find_submissions(course, submitted)[0]]


def test_students_come_in_the_order_of_their_names(tiny: Course, tmp_path: Path) -> None:
    for name in ("mia", "ada", "Zoe"):
        hand_in(tmp_path, name)
    found, others = find_submissions(tiny, tmp_path)
    paths = [f"{name}/averages" for name in ("Zoe", "ada", "mia")]
    assert [f"{s.student}/{s.assignment.id}" for s in found] == paths
    assert [s.folder.relative_to(tmp_path).as_posix() for s in found] == paths
    assert {each.path for each in others} == set(paths), "they are empty"


@pytest.mark.parametrize(
    "name",
    ["a b", "Ünï cödé", "李雷", "O'Brien; rm -rf ~", "-rf", "--help", "[bold]x", "%s{0}$HOME", "a.b@c.d", "x" * 120],
)
def test_an_odd_name_is_a_name(tiny: Course, tmp_path: Path, name: str) -> None:
    hand_in(tmp_path, name)
    assert students(tiny, tmp_path) == [name]


UNSAFE = {
    "a line break": b"a\nb", "a terminal's colour": b"\x1b[31mred", "a delete": b"a\x7f", "a backslash": b"a\\b", "Latin-1": b"caf\xe9",
    "121 letters": b"x" * 121, "a mark that turns the writing round": "a\u202eb".encode(), "a command to a CI runner": b"::error::ada",
}  # fmt: skip


@pytest.mark.parametrize("name", UNSAFE.values(), ids=UNSAFE)
def test_a_name_that_could_break_something_is_refused_and_the_rest_is_graded(
    tiny: Course, tmp_path: Path, name: bytes
) -> None:
    os.makedirs(os.path.join(os.fsencode(tmp_path), name, b"averages"))
    (hand_in(tmp_path, "ada") / "01_running_mean.py").touch()
    found, (refused,) = find_submissions(tiny, tmp_path)
    assert [s.student for s in found] == ["ada"]
    assert refused.reason.endswith("could break a page or a log. Next: rename it to the student's id")
    assert str(refused).isascii()
    assert str(refused).isprintable()


def test_nobody_is_called_as_a_file_of_the_results_is_or_hands_in_another_s_folder_by_a_link(
    tiny: Course, tmp_path: Path
) -> None:
    folder = hand_in(tmp_path, "ada")
    for name in ("not-graded.json", "Not-Graded.JSON", "report"):
        hand_in(tmp_path, name)
    (tmp_path / "ben").symlink_to("ada")
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "averages").symlink_to(folder)
    assert students(tiny, tmp_path) == ["ada", "report"]


def test_what_holds_nothing_is_an_error_that_says_what_belongs_there(tiny: Course, tmp_path: Path) -> None:
    with pytest.raises(CourseFault, match=r"holds no submission .* an assignment of: averages\). Next: course collect"):
        find_submissions(tiny, tmp_path)
    (tmp_path / "a_file").touch()
    for name in ("nowhere", "a_file"):
        with pytest.raises(CourseFault, match=r"is not a folder\. Next: course grade FOLDER"):
            find_submissions(tiny, tmp_path / name)
