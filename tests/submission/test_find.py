"""A folder of submissions: which are graded, and why other files are not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.files import CourseFault
from manyheads.submission.find_submitted_files import (
    NotGraded,
    closed_in,
    find_submissions,
    read_not_graded,
    write_not_graded,
)
from tests.make import cases

COLLECT = "Next: course collect {} --out collected, then course grade collected"
OTHER = "is no part of what is graded (STUDENT/ASSIGNMENT/NN_name.py). " + COLLECT
ARCHIVE = "is an archive, and `course grade` opens none. " + COLLECT
EMPTY = "is empty. Next: remove it, or put there what was handed in"
FILE = "01_running_mean.py"


def make_files(submitted: Path, *paths: str) -> None:
    """Create files; a path that ends with / becomes a folder."""
    for path in paths:
        target = submitted / path
        (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            target.touch()


@pytest.fixture
def reasons_by_path(tiny: Course, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a function that submits files beside a good attempt.

    It returns the reason why a file is not graded, by the file's path.
    """

    def find_reasons(*paths: str) -> dict[str, str]:
        make_files(tmp_path, f"good/averages/{FILE}", *paths)
        return {entry.path: entry.reason for entry in find_submissions(tiny, tmp_path)[1]}

    return find_reasons


DOTTED = (
    "is not graded, for its name begins with a dot, or could break a page or a log. "
    "Next: rename it to the student's id"
)


@cases(
    "handed_in, path, reason",
    {
        "no assignment": (f"ada/{FILE}", "", OTHER),
        "an assignment in capitals": (f"ada/Averages/{FILE}", "ada/Averages", OTHER),
        "a file in an assignment's place": ("ada/averages", "", OTHER),
        "a folder between": (f"ada/hw1/averages/{FILE}", "ada/hw1", OTHER),
        "an archive of a student": ("ada/hw1.zip", "", ARCHIVE),
        "an archive in an assignment": ("ada/averages/hw1.tar.gz", "", ARCHIVE),
        "an archive of a class": ("class.zip", "", ARCHIVE),
        "no student": (FILE, "", OTHER),
        "a folder deeper": ("ada/averages/deep/x.py", "ada/averages/deep", OTHER),
        "a folder like an exercise": (
            "ada/averages/01_running_mean (1)/x.py",
            "ada/averages/01_running_mean (1)",
            OTHER,
        ),
        "a module beside it": ("ada/averages/helpers.py", "", OTHER),
        "a hidden file": ("ada/averages/.x.py", "", OTHER),
        "another ending": ("ada/averages/running_mean.md", "", OTHER),
        "a copy beside the one that counts": ("good/averages/01_running_mean (1).py", "", OTHER),
        "no file of a student": ("ada/", "ada", EMPTY),
        "no file of an assignment": ("ada/averages/", "ada/averages", EMPTY),
        "a hidden student": (".ada/averages/x.py", ".ada", DOTTED),
    },
)
def test_a_file_that_is_not_graded_is_reported_with_a_next_step(
    reasons_by_path, tmp_path, handed_in, path, reason
):
    assert reasons_by_path(handed_in) == {path or handed_in: reason.format(tmp_path)}


@cases("where", {"at the top": "", "an assignment's": "ada/averages/", "a student's": "ada/"})
def test_at_most_20_ungraded_files_are_listed_and_the_rest_counted(tiny, tmp_path, where):
    make_files(tmp_path, f"ada/averages/{FILE}", *(f"{where}{i:03d}.txt" for i in range(1000)))
    submissions, not_graded = find_submissions(tiny, tmp_path)
    assert len(submissions) == 1
    assert [entry.path for entry in not_graded] == [
        *(f"{where}{i:03d}.txt" for i in range(20)),
        where.rstrip("/") or ".",
    ]
    assert (
        not_graded[-1].reason == f"holds 980 more that are not graded. {COLLECT.format(tmp_path)}"
    )


def test_links_are_reported_at_every_level_of_the_folder(tiny, tmp_path):
    folder = tmp_path / "ada" / "averages"
    make_files(tmp_path, f"ada/averages/{FILE}", "cat/")
    links = ("ben", "ada/other", "ada/averages/helper.py", "cat/averages")
    for link in links:
        (tmp_path / link).symlink_to(folder)
    submissions, not_graded = find_submissions(tiny, tmp_path)
    assert [s.student for s in submissions] == ["ada"]
    assert sorted(entry.path for entry in not_graded) == sorted(links)
    assert all(entry.reason.startswith("is a link,") for entry in not_graded)


IGNORED_FILES = (
    ".DS_Store",
    "__MACOSX/x",
    "desktop.ini",
    "__pycache__/x.pyc",
    ".ipynb_checkpoints/a-checkpoint.ipynb",
    "._01_running_mean.py",
    ".git/config",
    "Thumbs.db",
    "timestamp.txt",
)


def test_files_of_systems_editors_and_nbgrader_are_not_reported(reasons_by_path):
    noise = [where + name for where in ("", "good/", "good/averages/") for name in IGNORED_FILES]
    assert reasons_by_path(*noise, "good/averages/fingerprints/01_running_mean.safetensors") == {}


@pytest.mark.parametrize(
    "unreadable", ["ada", "ada/averages", f"ada/averages/{FILE}", "ada/averages/averages.ipynb"]
)
def test_an_unreadable_file_is_reported_and_still_a_submission(
    tiny, tmp_path, monkeypatch, unreadable
):
    make_files(tmp_path, f"ada/averages/{FILE}", "ada/averages/averages.ipynb")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / unreadable)
    (submission,), (entry,) = find_submissions(tiny, tmp_path)
    assert (submission.folder, entry.path, closed_in(submission)) == (
        tmp_path / "ada/averages",
        unreadable,
        [tmp_path / unreadable],
    )
    assert entry.reason.startswith(
        f"may not be read by who runs this. Next: chmod -R u+rwX {tmp_path / unreadable}, "
    )


def test_assignments_that_only_nbgrader_grades_are_ignored(tiny_copy, tmp_path):
    (tiny_copy / "source" / "ps1").mkdir(parents=True)
    make_files(tmp_path / "in", "ada/ps1/", "ben/ps1/", f"ada/averages/{FILE}")
    submissions, not_graded = find_submissions(load_course(tiny_copy), tmp_path / "in")
    assert ([s.student for s in submissions], not_graded) == (["ada"], [])


# In the order in which they come; some differ in case or in Unicode form alone.
NAMES = [
    "%s{0}$HOME",
    "--help",
    "-rf",
    "Ada",
    "O'Brien; rm -rf ~",
    "Zoe\u0308",
    "Zo\u00eb",
    "[bold]x",
    "a b",
    "a.b@c.d",
    "ada",
    "report",
    "x" * 120,
    "Ünï cödé",
    "李雷",
]


def test_students_are_sorted_by_name_also_with_unusual_names(tiny, tmp_path):
    make_files(tmp_path, *(f"{name}/averages/{FILE}" for name in reversed(NAMES)))
    submissions, not_graded = find_submissions(tiny, tmp_path)
    assert ([s.student for s in submissions], not_graded) == (NAMES, [])
    assert [s.folder for s in submissions] == [tmp_path / name / "averages" for name in NAMES]


@pytest.mark.parametrize(
    "name",
    [
        b"a\nb",
        b"\x1b[31mred",
        b"a\x7f",
        b"a\\b",
        b"caf\xe9",
        b"x" * 121,
        "a\u202eb".encode(),
        b"::error::ada",
        b"not-graded.json",
        b"Not-Graded.JSON",
    ],
)
def test_a_dangerous_folder_name_is_refused_and_others_are_graded(tiny, tmp_path, name):
    os.makedirs(os.path.join(os.fsencode(tmp_path), name, b"averages"))
    make_files(tmp_path, f"ada/averages/{FILE}")
    submissions, (refused,) = find_submissions(tiny, tmp_path)
    assert [s.student for s in submissions] == ["ada"]
    assert refused.reason.endswith(
        "could break a page or a log. Next: rename it to the student's id"
    )
    assert str(refused).isascii()
    assert str(refused).isprintable()


def test_control_characters_in_reported_names_are_escaped(reasons_by_path):
    (path,) = reasons_by_path("ada/averages/running_mean\n::error::\x1b[2J\u202e.py")
    assert path.isascii()
    assert path.isprintable()
    assert r"\x1b[2J" in path


def test_no_submissions_or_no_folder_is_an_error_with_a_next_step(tiny, tmp_path):
    with pytest.raises(
        CourseFault,
        match=r"holds no submission .* an assignment of: averages\). Next: course collect",
    ):
        find_submissions(tiny, tmp_path)
    (tmp_path / "a_file").touch()
    for name in ("nowhere", "a_file"):
        with pytest.raises(CourseFault, match=r"is not a folder\. Next: course grade FOLDER"):
            find_submissions(tiny, tmp_path / name)


def test_the_list_of_ungraded_files_survives_writing_and_reading(tmp_path):
    assert read_not_graded(tmp_path) == []
    entries = [NotGraded(path="Zoë/a.zip", reason="is an archive. Next: course collect x")]
    write_not_graded(entries, tmp_path)
    assert read_not_graded(tmp_path) == entries
