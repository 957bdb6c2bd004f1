"""Git for Windows can convert line endings: released files stay the same."""

import subprocess
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import hand_over
from manyheads.authoring.templates import as_they_are
from manyheads.course import Course
from manyheads.files import CourseFault
from tests.authoring.test_hand_over import SCRIPT, add_manifest
from tests.make import REPOSITORY, TINY, content, git

RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"


@pytest.fixture
def files_git_may_convert() -> dict[str, bytes]:
    """Return the text files of a class repository, whose line endings git could convert."""
    tiny_files = {name: (TINY / name).read_bytes() for name in (SCRIPT, RECORDING)}
    return add_manifest({**dict(as_they_are("shared")), **tiny_files})


@pytest.fixture
def released_folder(tiny: Course, files_git_may_convert: dict[str, bytes], tmp_path: Path) -> Path:
    """Return a folder with the class repository, committed to git."""
    folder = tmp_path / "class"
    hand_over(tiny, folder, files_git_may_convert)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as released")
    return folder


def windows_clone(folder: Path) -> Path:
    """Clone a repository with the default setting of Git for Windows."""
    clone = folder.with_name("windows")
    git(folder.parent, "clone", "--quiet", "-c", "core.autocrlf=true", str(folder), str(clone))
    return clone


def test_a_clone_of_git_for_windows_has_the_released_files(
    tiny, files_git_may_convert, released_folder
):
    clone = windows_clone(released_folder)
    assert content(clone) == files_git_may_convert
    assert hand_over(tiny, clone, files_git_may_convert) == []
    script = clone / "tools" / "find-python"
    assert subprocess.run(["sh", script], capture_output=True, check=False).returncode == 0


def test_windows_line_endings_are_not_committed(
    released_folder,
):
    attempt = (released_folder / SCRIPT).read_bytes().replace(b"\n", b"\r\n")
    (released_folder / SCRIPT).write_bytes(attempt + b"mine = 1\r\n")
    git(released_folder, "commit", "--quiet", "--all", "--message", "from an editor of Windows")
    changed_lines = git(released_folder, "show", "--numstat", "--format=", "HEAD")
    assert changed_lines.split() == ["1", "0", SCRIPT]


def test_a_release_replaces_files_that_differ_only_in_line_endings(
    tiny, files_git_may_convert, tmp_path
):
    """Other line endings alone are not a change that somebody made."""
    hand_over(tiny, tmp_path, files_git_may_convert)
    for name in ("tools/build-venv", SCRIPT):
        path = tmp_path / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert sorted(hand_over(tiny, tmp_path, files_git_may_convert)) == [SCRIPT, "tools/build-venv"]
    assert content(tmp_path) == files_git_may_convert
    (tmp_path / SCRIPT).write_bytes(b"mine = 1\r\n")
    with pytest.raises(CourseFault, match="somebody's work"):
        hand_over(tiny, tmp_path, files_git_may_convert)


def test_git_must_not_convert_files_of_this_repository():
    attributes = git(REPOSITORY, "check-attr", "text", "README.md", "tools/build-venv", SCRIPT)
    assert {line.rpartition(": ")[2] for line in attributes.splitlines()} == {"unset"}
