"""Where the machine does not let a command read or write: one sentence, exit status 2, and nothing half-written."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.result import write_result
from tests import make
from tests.make import hand_in, run

MEAN = "def running_mean(x):\n    return x\n"


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "in", dict.fromkeys(("ada", "bela"), MEAN))


def grade(
    tiny: Path, submitted: Path, out: Path, before: str = "", after: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `course grade` in a shell, with this before it and after it."""
    options = f"--out {out} --jobs 1 --no-lines --seed 0"
    line = f"{before}{sys.executable} -m manyheads grade {submitted} {options} {after}"
    return run("bash", "-o", "pipefail", "-c", line, cwd=tiny)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one result and not for two."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root mounts a small file system, and not on every machine")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_told_and_what_is_written_is_whole(tiny_copy, submitted, small_disk, tmp_path):
    done = grade(tiny_copy, submitted, small_disk)
    assert done.returncode == 2
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("course: ")]
    assert said.startswith(f"course: {small_disk}/")
    assert said.endswith(
        "No space left on device. Next: make room there, then the same command again: what is written is whole"
    )
    for path in small_disk.rglob("*"):
        assert path.suffix != ".partial"
        if path.suffix == ".json":
            json.loads(path.read_text())
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    assert grade(tiny_copy, submitted, small_disk).returncode == 0
    assert grade(tiny_copy, submitted, tmp_path / "roomy").returncode == 0
    for student in ("ada", "bela"):
        name = f"{student}/averages.json"
        assert (small_disk / name).read_bytes() == (tmp_path / "roomy" / name).read_bytes()


@pytest.mark.parametrize(("after", "says"), [
    (">&-", "course: standard output is closed. Next: the same command, with its output to a file or to /dev/null"),
    ("> /dev/full", "course: standard output: No space left on device. Next: make room there, then the same command again: what is written is whole"),
])  # fmt: skip
def test_an_output_that_takes_nothing_is_told(tiny_copy, submitted, tmp_path, after, says):
    done = grade(tiny_copy, submitted, tmp_path / "out", after=after)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, says)


@pytest.mark.parametrize("after", ["| true", "| head -1"])
def test_where_nobody_reads_any_longer_it_ends_without_a_word(tiny_copy, submitted, tmp_path, after):
    done = grade(tiny_copy, submitted, tmp_path / "out", after=after)
    assert (done.returncode, "course: " in done.stderr, "Traceback" in done.stderr) == (141, False, False)


@pytest.mark.parametrize("options", ["", "--json", "--format lines"])
def test_check_whose_output_nobody_reads_ends_without_a_word(student_copy: Path, options: str) -> None:
    (student_copy / "exercises" / "averages" / "01_running_mean.py").write_text(MEAN)
    line = f"{sys.executable} -m manyheads check {options} | true"
    done = run("bash", "-o", "pipefail", "-c", line, cwd=student_copy)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


def test_a_file_in_place_of_a_folder_is_told(tiny_copy: Path, submitted: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = grade(tiny_copy, submitted, tmp_path / "file" / "out")
    says = f"course: {tmp_path}/file/out: Not a directory. Next: move it elsewhere, or name another place\n"
    assert (done.returncode, done.stderr) == (2, says)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_root_of_a_namespace_with_nobody_else_is_told(tiny_copy: Path, submitted: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces can be made here")
    done = grade(tiny_copy, submitted, tmp_path / "out", before="unshare -r ")
    assert done.returncode == 2
    assert done.stderr == (
        "course: root is the only user of this user namespace, and an attempt has to be another one. "
        "Next: the same command outside of it, as an ordinary user\n"
    )


@pytest.mark.parametrize(("format", "below"), [("csv", ""), ("gradescope", "ada/averages/results.json")])
def test_an_export_to_a_full_disk_leaves_the_last_file_as_it_was(run_course, small_disk, tmp_path, format, below):
    write_result(make.result("ada", make.exercise("running_mean", score=1, max_score=4)), tmp_path / "results")
    out = small_disk / "grades"
    (written := out / below).parent.mkdir(parents=True, exist_ok=True)
    written.write_text("as it was\n")
    (small_disk / "filler").write_bytes(bytes(4096))
    done = run_course("export", "results", "--format", format, "--out", out, cwd=tmp_path)
    assert (done.returncode, written.read_text()) == (2, "as it was\n")
    assert "cannot be written (No space left on device). Next: give --out another path" in done.stderr
