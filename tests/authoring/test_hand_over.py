"""Writing a new release into a class repository never overwrites other people's changes."""

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
NOTHING_WRITTEN = ": nothing is written"


@pytest.fixture(scope="module")
def class_files() -> dict[str, bytes]:
    """Return the files of a small class repository."""
    stub = (TINY / SCRIPT).read_bytes()
    names = ("LICENSE", "Makefile", "README.md", "tools/build-venv", "tools/find-python")
    return add_manifest({name: f"# {name}\n".encode() for name in names} | {SCRIPT: stub})


def add_manifest(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with a manifest of their digests."""
    digests = {
        name: hashlib.sha256(text).hexdigest() for name, text in files.items() if name != MANIFEST
    }
    return {**files, MANIFEST: json.dumps({"owner": "@school", "files": digests}).encode()}


@pytest.fixture
def handed_over(tiny: Course, class_files: dict[str, bytes], tmp_path: Path) -> Path:
    """Return a folder to which class_files were released."""
    hand_over(tiny, tmp_path / "class", class_files)
    return tmp_path / "class"


def test_a_folder_with_other_files_is_refused(tiny, class_files, tmp_path):
    (tmp_path / "thesis.tex").write_text("my own")
    with pytest.raises(
        CourseFault, match=f"{tmp_path} holds other things than an earlier release{NOTHING_WRITTEN}"
    ):
        hand_over(tiny, tmp_path, class_files)
    assert content(tmp_path) == {"thesis.tex": b"my own"}


def test_an_empty_git_repository_is_accepted(tiny, class_files, tmp_path):
    git(tmp_path, "init", "--quiet")
    assert set(hand_over(tiny, tmp_path, class_files)) == class_files.keys() - {MANIFEST}


def test_a_new_release_updates_files_and_keeps_added_ones(tiny, class_files, handed_over):
    git(handed_over, "init", "--quiet")
    git(handed_over, "add", "--all")
    git(handed_over, "commit", "--quiet", "--message", "as released")
    (handed_over / "syllabus.md").write_text("Week 1: averages\n")
    newer_files = class_files | {"README.md": b"# Averages, again\n", "exercises/new.py": b"pass\n"}
    removed_files = ("LICENSE", "tools/build-venv", "tools/find-python")
    for name in removed_files:
        del newer_files[name]
    newer_files = add_manifest(newer_files)
    assert {*hand_over(tiny, handed_over, newer_files)} == {
        "README.md",
        "exercises/new.py",
        *removed_files,
    }
    assert content(handed_over) == {**newer_files, "syllabus.md": b"Week 1: averages\n"}
    assert not (handed_over / "tools").exists()


def test_a_release_can_be_repeated_also_after_an_interruption(tiny, class_files, handed_over):
    assert hand_over(tiny, handed_over, class_files) == []
    newer_files = dict(class_files) | {"README.md": b"# newer\n", "Makefile": b"newer:\n"}
    (handed_over / "README.md").write_bytes(
        newer_files["README.md"]
    )  # the first release stopped after this file
    assert hand_over(tiny, handed_over, newer_files) == ["Makefile"]


def link_tools(folder: Path) -> None:
    """Replace the folder tools by a link."""
    shutil.move(folder / "tools", folder / "mine")
    (folder / "tools").symlink_to("mine")


def make_folder_of_license(folder: Path) -> None:
    """Replace the file LICENSE by a folder."""
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").mkdir()


@cases(
    "change, reason",
    {
        "an attempt": (write(SCRIPT, RIGHT), f"{SCRIPT} has changed since it was released"),
        "another file": (write("README.md", "my notes"), "README.md has changed"),
        "a folder in a file's place": (make_folder_of_license, "LICENSE has changed"),
        "a link in a folder's place": (link_tools, "tools is a link"),
        "a manifest that is damaged": (write(MANIFEST, "{"), "released.json cannot be read"),
    },
)
def test_changed_files_are_never_overwritten(tiny, class_files, handed_over, change, reason):
    change(handed_over)
    original = content(handed_over)
    newer_files = add_manifest({name: text + b"\n" for name, text in class_files.items()})
    with pytest.raises(CourseFault) as error:
        hand_over(tiny, handed_over, newer_files)
    assert reason in str(error.value)
    assert NOTHING_WRITTEN in str(error.value)
    assert content(handed_over) == original


def test_the_secret_is_never_released(class_files, tiny_copy, tmp_path):
    secret = "5ec2e7" * 10
    (tiny_copy / ".course").mkdir()
    (tiny_copy / ".course" / "secret").write_text(secret)
    course = load_course(tiny_copy)
    files_with_secret = class_files | {
        "manyheads/course/notes.md": f"the secret is {secret}".encode()
    }
    with pytest.raises(
        CourseFault,
        match=r"manyheads/course/notes\.md holds the course's secret: nothing is written",
    ):
        hand_over(course, tmp_path / "class", files_with_secret)
    assert not (tmp_path / "class").exists()
