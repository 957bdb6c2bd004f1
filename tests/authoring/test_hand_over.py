"""A class repository is written without overwriting anybody's work."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import hand_over
from manyheads.course import Course, load_course
from manyheads.files import CourseFault
from manyheads.submission.newer_python import MANIFEST
from tests.make import RIGHT, TINY, cases, content, git, write

SCRIPT = "exercises/averages/01_running_mean.py"
REFUSED = ": nothing is written"


@pytest.fixture(scope="module")
def few() -> dict[str, bytes]:
    """A class repository of a few files, for it does not matter which."""
    stub = (TINY / SCRIPT).read_bytes()
    names = ("LICENSE", "Makefile", "README.md", "tools/build-venv", "tools/find-python")
    return add_manifest({name: f"# {name}\n".encode() for name in names} | {SCRIPT: stub})


def add_manifest(files: dict[str, bytes]) -> dict[str, bytes]:
    digests = {
        name: hashlib.sha256(text).hexdigest() for name, text in files.items() if name != MANIFEST
    }
    return {**files, MANIFEST: json.dumps({"owner": "@school", "files": digests}).encode()}


@pytest.fixture
def handed_over(tiny: Course, few: dict[str, bytes], tmp_path: Path) -> Path:
    """These few files, handed over."""
    hand_over(tiny, tmp_path / "class", few)
    return tmp_path / "class"


def test_into_a_folder_with_other_things_nothing_is_written(tiny, few, tmp_path):
    (tmp_path / "thesis.tex").write_text("my own")
    with pytest.raises(
        CourseFault, match=f"{tmp_path} holds other things than an earlier release{REFUSED}"
    ):
        hand_over(tiny, tmp_path, few)
    assert content(tmp_path) == {"thesis.tex": b"my own"}


def test_a_new_git_repository_may_be_filled(tiny, few, tmp_path):
    git(tmp_path, "init", "--quiet")
    assert set(hand_over(tiny, tmp_path, few)) == few.keys() - {MANIFEST}


def test_an_earlier_release_is_brought_up_to_date_and_what_others_added_stays(
    tiny, few, handed_over
):
    git(handed_over, "init", "--quiet")
    git(handed_over, "add", "--all")
    git(handed_over, "commit", "--quiet", "--message", "as released")
    (handed_over / "syllabus.md").write_text("Week 1: averages\n")
    newer = few | {"README.md": b"# Averages, again\n", "exercises/new.py": b"pass\n"}
    gone = ("LICENSE", "tools/build-venv", "tools/find-python")
    for name in gone:
        del newer[name]
    newer = add_manifest(newer)
    assert {*hand_over(tiny, handed_over, newer)} == {"README.md", "exercises/new.py", *gone}
    assert content(handed_over) == {**newer, "syllabus.md": b"Week 1: averages\n"}
    assert not (handed_over / "tools").exists()


def test_twice_the_same_release_changes_nothing_and_one_that_was_cut_off_can_be_repeated(
    tiny, few, handed_over
):
    assert hand_over(tiny, handed_over, few) == []
    newer = dict(few) | {"README.md": b"# newer\n", "Makefile": b"newer:\n"}
    (handed_over / "README.md").write_bytes(newer["README.md"])  # as far as it got
    assert hand_over(tiny, handed_over, newer) == ["Makefile"]


def link_tools(folder: Path) -> None:
    shutil.move(folder / "tools", folder / "mine")
    (folder / "tools").symlink_to("mine")


def make_folder_of_license(folder: Path) -> None:
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").mkdir()


@cases(
    "work, says",
    {
        "an attempt": (write(SCRIPT, RIGHT), f"{SCRIPT} has changed since it was released"),
        "another file": (write("README.md", "my notes"), "README.md has changed"),
        "a folder in a file's place": (make_folder_of_license, "LICENSE has changed"),
        "a link in a folder's place": (link_tools, "tools is a link"),
        "a manifest that is damaged": (write(MANIFEST, "{"), "released.json cannot be read"),
    },
)
def test_somebodys_work_is_never_overwritten(tiny, few, handed_over, work, says):
    work(handed_over)
    original = content(handed_over)
    newer = add_manifest({name: text + b"\n" for name, text in few.items()})
    with pytest.raises(CourseFault) as error:
        hand_over(tiny, handed_over, newer)
    assert says in str(error.value)
    assert REFUSED in str(error.value)
    assert content(handed_over) == original


def test_the_secret_is_never_released(few, tiny_copy, tmp_path):
    secret = "5ec2e7" * 10
    (tiny_copy / ".course").mkdir()
    (tiny_copy / ".course" / "secret").write_text(secret)
    course = load_course(tiny_copy)
    spoilt = few | {"manyheads/course/notes.md": f"the secret is {secret}".encode()}
    with pytest.raises(
        CourseFault,
        match=r"manyheads/course/notes\.md holds the course's secret: nothing is written",
    ):
        hand_over(course, tmp_path / "class", spoilt)
    assert not (tmp_path / "class").exists()
