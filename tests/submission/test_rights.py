"""Folders and files that an ordinary user cannot list, enter or read: named with the student, and everybody else is collected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.submission.lay_out import read_memory

from .conftest import DANCE

FILE = "04_reshape_dance.py"
DANCED = f"multi_head_attention/{FILE}"
PROGRAM = """
import json, os, sys
from pathlib import Path
from manyheads.submission.collect_downloads import collect
from manyheads.course import load_course
course = load_course(Path(sys.argv[1]))
os.chdir(sys.argv[2])
if os.geteuid() == 0:
    os.setuid(65534)
done = collect(course, [Path("all")], Path("out/in"))
print(json.dumps([done.not_taken, sorted(each.path for each in done.laid)]))
"""
Ordinary = Callable[[], list[list[str]]]


@pytest.fixture
def ordinary(repository: Path, tmp_path: Path) -> Ordinary:
    """Collect a folder as an ordinary user: what is not taken, and what is laid out."""
    for folder in ("all/ada", "all/bela/deep", "out"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ada", "bela"):
        (tmp_path / "all" / name / FILE).write_text(DANCE)
    tmp_path.chmod(0o755)
    (tmp_path / "out").chmod(0o777)

    def run() -> list[list[str]]:
        program = [sys.executable, "-c", PROGRAM, str(repository), str(tmp_path)]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: list[list[str]] = json.loads(done.stdout)
        return found

    return run


@pytest.mark.parametrize("mode", [0o000, 0o644, 0o311])
def test_a_folder_is_named_with_the_student_and_the_others_are_collected(
    ordinary: Ordinary, tmp_path: Path, mode: int
) -> None:
    locked = tmp_path / "all" / "bela"
    locked.chmod(mode)
    try:
        (said,), laid = ordinary()
    finally:
        locked.chmod(0o755)
    assert laid == [f"ada/{DANCED}"]
    told = (
        "bela: handed in, not readable: all: bela/ is not read: Permission denied; chmod -R u+rwX all/bela changes that"
    )
    assert said.startswith(f"{told}. Next: ")
    assert read_memory(tmp_path / "out" / "in").not_readable == {"bela": {"multi_head_attention": ["bela/"]}}
    assert ordinary()[1] == [f"{name}/{DANCED}" for name in ("ada", "bela")]


def test_a_folder_within_a_students_is_named_beside_what_is_collected(ordinary: Ordinary, tmp_path: Path) -> None:
    locked = tmp_path / "all" / "bela" / "deep"
    locked.chmod(0)
    try:
        (said,), laid = ordinary()
    finally:
        locked.chmod(0o755)
    assert laid == [f"{name}/{DANCED}" for name in ("ada", "bela")]
    assert said.startswith("bela: handed in, not readable: all: bela/deep/ is not read: Permission denied")


def test_a_file_is_named_with_the_student(ordinary: Ordinary, tmp_path: Path) -> None:
    locked = tmp_path / "all" / "bela" / FILE
    locked.chmod(0)
    (said,), laid = ordinary()
    assert laid == [f"ada/{DANCED}"]
    assert f"all: bela/{FILE} is not read: Permission denied; chmod -R u+rwX all/bela/{FILE} changes that" in said
