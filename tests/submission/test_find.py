"""Which folders are submissions, and whose; whatever else lies there is named with its reason and
with what to do next.
"""

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

COLLECT = "Next: course collect {} --out collected, then course grade collected"
OTHER = "is no part of what is graded (STUDENT/ASSIGNMENT/NN_name.py). " + COLLECT
ARCHIVE = "is an archive, and `course grade` opens none. " + COLLECT
EMPTY = "is empty. Next: remove it, or put there what was handed in"
FILE = "01_running_mean.py"


def hand_in(submitted: Path, *paths: str) -> None:
    """Make files; a path that ends with / is a folder."""
    for path in paths:
        target = submitted / path
        (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            target.touch()


@pytest.fixture
def reasons_by_path(tiny: Course, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Hand in files beside a good attempt; what is named of them, by its path."""

    def look(*paths: str) -> dict[str, str]:
        hand_in(tmp_path, f"good/averages/{FILE}", *paths)
        return {entry.path: entry.reason for entry in find_submissions(tiny, tmp_path)[1]}

    return look


@pytest.mark.parametrize(
    ("handed_in", "path", "reason"),
    [
        ("ada/01_running_mean.py", "", OTHER),
        ("ada/Averages/01_running_mean.py", "ada/Averages", OTHER),
        ("ada/averages", "", OTHER),  # a file
        ("ada/hw1/averages/01_running_mean.py", "ada/hw1", OTHER),
        ("ada/hw1/notes.md", "ada/hw1", OTHER),
        ("ada/hw1.zip", "", ARCHIVE),
        ("ada/averages/hw1.tar.gz", "", ARCHIVE),
        ("class.zip", "", ARCHIVE),
        ("01_running_mean.py", "", OTHER),
        ("notes.md", "", OTHER),
        ("ada/notes.md", "", OTHER),
        ("ada/averages/deep/x.py", "ada/averages/deep", OTHER),
        ("ada/averages/01_running_mean (1)/x.py", "ada/averages/01_running_mean (1)", OTHER),
        ("ada/averages/helpers.py", "", OTHER),
        ("ada/averages/.x.py", "", OTHER),
        ("ada/averages/running_mean.md", "", OTHER),
        ("good/averages/01_running_mean (1).py", "", OTHER),  # beside the one that counts
        ("ada/", "ada", EMPTY),
        ("ada/averages/", "ada/averages", EMPTY),
        ("ada/hw1/", "ada/hw1", EMPTY),
        (
            ".ada/averages/x.py",
            ".ada",
            "is not graded, for its name begins with a dot, or could break a page or a log. "
            "Next: rename it to the student's id",
        ),
        ("ada/averages/01-running-mean (1).ipynb", "", OTHER),
    ],
)
def test_what_is_not_graded_is_named_with_what_to_do(
    reasons_by_path, tmp_path, handed_in, path, reason
):
    assert reasons_by_path(handed_in) == {path or handed_in: reason.format(tmp_path)}


@pytest.mark.parametrize(
    "where", ["", "ada/averages/", "ada/"], ids=["at the top", "an assignment's", "a student's"]
)
def test_of_a_thousand_files_a_few_are_named_and_the_rest_is_counted(tiny, tmp_path, where):
    hand_in(tmp_path, f"ada/averages/{FILE}", *(f"{where}{i:03d}.txt" for i in range(1000)))
    submissions, not_graded = find_submissions(tiny, tmp_path)
    assert len(submissions) == 1
    assert [entry.path for entry in not_graded] == [
        *(f"{where}{i:03d}.txt" for i in range(20)),
        where.rstrip("/") or ".",
    ]
    assert (
        not_graded[-1].reason == f"holds 980 more that are not graded. {COLLECT.format(tmp_path)}"
    )


def test_links_are_named_wherever_they_stand_and_whatever_they_lead_to(tiny, tmp_path):
    folder = tmp_path / "ada" / "averages"
    hand_in(tmp_path, f"ada/averages/{FILE}", "cat/")
    for link in ("ben", "ada/other", "ada/averages/helper.py", "cat/averages"):
        (tmp_path / link).symlink_to(folder)
    submissions, not_graded = find_submissions(tiny, tmp_path)
    assert [s.student for s in submissions] == ["ada"]
    assert {entry.path for entry in not_graded} == {
        "ben",
        "ada/other",
        "ada/averages/helper.py",
        "cat/averages",
    }
    assert {entry.reason.split(",")[0] for entry in not_graded} == {"is a link"}


NOISE = (
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


def test_what_systems_and_editors_and_nbgrader_and_the_release_leave_is_nothing(reasons_by_path):
    noise = [where + name for where in ("", "good/", "good/averages/") for name in NOISE]
    assert reasons_by_path(*noise, "good/averages/fingerprints/01_running_mean.safetensors") == {}


@pytest.mark.parametrize(
    "closed", ["ada", "ada/averages", f"ada/averages/{FILE}", "ada/averages/averages.ipynb"]
)
def test_what_may_not_be_read_is_named_and_is_a_submission(tiny, tmp_path, monkeypatch, closed):
    hand_in(tmp_path, f"ada/averages/{FILE}", "ada/averages/averages.ipynb")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / closed)
    (submission,), (entry,) = find_submissions(tiny, tmp_path)
    assert (submission.folder, entry.path, closed_in(submission)) == (
        tmp_path / "ada/averages",
        closed,
        [tmp_path / closed],
    )
    assert entry.reason.startswith(
        f"may not be read by who runs this. Next: chmod -R u+rwX {tmp_path / closed}, "
    )


def test_assignments_that_nbgrader_alone_grades_are_its_own(tiny_copy, tmp_path):
    (tiny_copy / "source" / "ps1").mkdir(parents=True)
    hand_in(tmp_path / "in", "ada/ps1/", "ben/ps1/", f"ada/averages/{FILE}")
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


def test_students_come_in_the_order_of_their_names_however_odd_these_are(tiny, tmp_path):
    hand_in(tmp_path, *(f"{name}/averages/{FILE}" for name in reversed(NAMES)))
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
def test_a_name_that_could_break_something_is_refused_and_the_rest_is_graded(tiny, tmp_path, name):
    os.makedirs(os.path.join(os.fsencode(tmp_path), name, b"averages"))
    hand_in(tmp_path, f"ada/averages/{FILE}")
    submissions, (refused,) = find_submissions(tiny, tmp_path)
    assert [s.student for s in submissions] == ["ada"]
    assert refused.reason.endswith(
        "could break a page or a log. Next: rename it to the student's id"
    )
    assert str(refused).isascii()
    assert str(refused).isprintable()


def test_names_that_could_break_a_terminal_or_a_log_are_shown_harmlessly(reasons_by_path):
    (path,) = reasons_by_path("ada/averages/running_mean\n::error::\x1b[2J\u202e.py")
    assert path.isascii()
    assert path.isprintable()
    assert r"\x1b[2J" in path


def test_what_holds_nothing_is_an_error_that_says_what_belongs_there(tiny, tmp_path):
    with pytest.raises(
        CourseFault,
        match=r"holds no submission .* an assignment of: averages\). Next: course collect",
    ):
        find_submissions(tiny, tmp_path)
    (tmp_path / "a_file").touch()
    for name in ("nowhere", "a_file"):
        with pytest.raises(CourseFault, match=r"is not a folder\. Next: course grade FOLDER"):
            find_submissions(tiny, tmp_path / name)


def test_the_list_is_read_as_it_was_written(tmp_path):
    assert read_not_graded(tmp_path) == []
    entries = [NotGraded(path="Zoë/a.zip", reason="is an archive. Next: course collect x")]
    write_not_graded(entries, tmp_path)
    assert read_not_graded(tmp_path) == entries
