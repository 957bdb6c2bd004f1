"""Where a class repository is put: nobody's work is overwritten, and nothing hidden is
published.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import hand_over
from manyheads.course import Course, load_course
from manyheads.files import CourseFault
from manyheads.submission.newer_python import MANIFEST
from tests.make import RIGHT, TINY, content, git

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


def test_a_new_git_repository_may_be_filled(
    tiny: Course, few: dict[str, bytes], tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    assert set(hand_over(tiny, tmp_path, few)) == few.keys() - {MANIFEST}


def test_an_earlier_release_is_brought_up_to_date_and_what_others_added_stays(tiny, few, folder):
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as released")
    (folder / "syllabus.md").write_text("Week 1: averages\n")
    gone = ("LICENSE", "tools/build-venv", "tools/find-python")
    remaining = {name: text for name, text in few.items() if name not in gone}
    newer = add_manifest(
        remaining | {"README.md": b"# Averages, again\n", "exercises/new.py": b"pass\n"}
    )
    changed = hand_over(tiny, folder, newer)
    assert sorted(changed) == sorted(["README.md", "exercises/new.py", *gone])
    assert content(folder) == {**newer, "syllabus.md": b"Week 1: averages\n"}
    assert not (folder / "tools").exists()


def test_twice_the_same_release_changes_nothing_and_one_that_was_cut_off_can_be_repeated(
    tiny, few, folder
):
    assert hand_over(tiny, folder, few) == []
    newer = dict(few) | {"README.md": b"# newer\n", "Makefile": b"newer:\n"}
    (folder / "README.md").write_bytes(newer["README.md"])  # as far as it got
    assert hand_over(tiny, folder, newer) == ["Makefile"]


@pytest.mark.parametrize(
    ("work", "says"),
    [
        pytest.param(
            lambda f: (f / SCRIPT).write_text(RIGHT),
            f"{SCRIPT} has changed since it was released",
            id="an attempt",
        ),
        pytest.param(
            lambda f: (f / "README.md").write_text("my notes"),
            "README.md has changed",
            id="another file",
        ),
        pytest.param(
            lambda f: ((f / "LICENSE").unlink(), (f / "LICENSE").mkdir()),
            "LICENSE has changed",
            id="a folder in a file's place",
        ),
        pytest.param(
            lambda f: (shutil.move(f / "tools", f / "mine"), (f / "tools").symlink_to("mine")),
            "tools is a link",
            id="a link in a folder's place",
        ),
        pytest.param(
            lambda f: (f / MANIFEST).write_text("{"),
            "released.json cannot be read",
            id="a manifest that is damaged",
        ),
    ],
)
def test_somebodys_work_is_never_overwritten(tiny, few, folder, work, says):
    work(folder)
    original = content(folder)
    newer = add_manifest({name: text + b"\n" for name, text in few.items() if name != MANIFEST})
    with pytest.raises(CourseFault) as error:
        hand_over(tiny, folder, newer)
    assert says in str(error.value)
    assert ": nothing is written" in str(error.value)
    assert content(folder) == original


def test_the_secret_is_never_released(
    few: dict[str, bytes], tiny_copy: Path, tmp_path: Path
) -> None:
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
