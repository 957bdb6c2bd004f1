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
def folder(tiny: Course, few: dict[str, bytes], tmp_path: Path) -> Path:
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


def test_an_earlier_release_is_brought_up_to_date_and_what_others_added_stays(tiny, few, folder):
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as released")
    (folder / "syllabus.md").write_text("Week 1: averages\n")
    newer = few | {"README.md": b"# Averages, again\n", "exercises/new.py": b"pass\n"}
    gone = ("LICENSE", "tools/build-venv", "tools/find-python")
    for name in gone:
        del newer[name]
    newer = add_manifest(newer)
    assert {*hand_over(tiny, folder, newer)} == {"README.md", "exercises/new.py", *gone}
    assert content(folder) == {**newer, "syllabus.md": b"Week 1: averages\n"}
    assert not (folder / "tools").exists()


def test_twice_the_same_release_changes_nothing_and_one_that_was_cut_off_can_be_repeated(
    tiny, few, folder
):
    assert hand_over(tiny, folder, few) == []
    newer = dict(few) | {"README.md": b"# newer\n", "Makefile": b"newer:\n"}
    (folder / "README.md").write_bytes(newer["README.md"])  # as far as it got
    assert hand_over(tiny, folder, newer) == ["Makefile"]


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
def test_somebodys_work_is_never_overwritten(tiny, few, folder, work, says):
    work(folder)
    original = content(folder)
    newer = add_manifest({name: text + b"\n" for name, text in few.items()})
    with pytest.raises(CourseFault) as error:
        hand_over(tiny, folder, newer)
    assert says in str(error.value)
    assert REFUSED in str(error.value)
    assert content(folder) == original


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
