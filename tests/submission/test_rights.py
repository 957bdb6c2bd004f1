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


@pytest.mark.parametrize(("place", "mode", "told", "laid"), [
    *(("bela", mode, "bela/", ["ada"]) for mode in (0o000, 0o644, 0o311)),
    ("bela/deep", 0, "bela/deep/", ["ada", "bela"]),
    (f"bela/{FILE}", 0, f"bela/{FILE}", ["ada"]),
])  # fmt: skip
def test_what_is_closed_is_named_with_the_student_and_the_others_are_collected(
    ordinary: Ordinary, tmp_path: Path, place: str, mode: int, told: str, laid: list[str]
) -> None:
    locked = tmp_path / "all" / place
    before = locked.stat().st_mode
    locked.chmod(mode)
    try:
        (said,), found = ordinary()
    finally:
        locked.chmod(before)
    assert found == [f"{name}/{DANCED}" for name in laid]
    why = f"is not read: Permission denied; chmod -R u+rwX all/{place} changes that. Next: "
    assert said.startswith(f"bela: handed in, not readable: all: {told} {why}")
    assert read_memory(tmp_path / "out" / "in").not_readable == {"bela": {"multi_head_attention": [told]}}
    assert ordinary()[1] == [f"{name}/{DANCED}" for name in ("ada", "bela")]
