"""`course bench EXERCISE` as a person runs it, on a student's own code."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.copies import copy_course

Run = Callable[..., subprocess.CompletedProcess[str]]
STREAMS = Path(__file__).parents[1] / "stateful_course"
BENCH = """
        bench:
          - title: time of a chunk
            teaches: A chunk costs the same whatever came before.
            measures: time
            over: past
            values: [2, 4, 8, 16]
            sizes: {B: 1, C: 4}
            lines:
              - {name: one more, call: RunningMean, sizes: {T: 1}, after: {T: past}}
          - title: memory
            teaches: All at once holds all at once.
            measures: memory
            over: T
            values: [2, 4, 8, 16]
            sizes: {B: 1, C: 4}
            lines: [{name: at once, call: RunningMean}]
"""


pytestmark = pytest.mark.journey  # processes that compute


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A student's folder: two exercises, of which the second can be measured and is not begun."""
    folder = copy_course(STREAMS, tmp_path / "mine")
    with (folder / "course.yaml").open("a", encoding="utf-8") as file:
        file.write(BENCH.lstrip("\n"))
    for name in ("solutions", "grader"):
        shutil.rmtree(folder / name)
    return folder


def write(folder: Path, source: str) -> None:
    (folder / "exercises" / "streams" / "02_running_mean.py").write_text(source, encoding="utf-8")


def right() -> str:
    return (STREAMS / "solutions" / "streams" / "02_running_mean.py").read_text(encoding="utf-8")


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line[:6].strip().isdigit()]


def test_ones_own_code_is_measured_and_drawn(run_course: Run, folder: Path) -> None:
    write(folder, right())
    done = run_course("bench", "streams", "--quick", "--out", "bench.png", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(done.stdout)
    assert [row[0] for row in found] == ["2", "4", "8"] * 2
    assert all(float(row[1]) > 0 for row in found)
    assert "Not checked as right, so read with care: running_mean." in done.stdout
    assert (folder / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_what_fails_is_told_in_its_row_and_the_rest_is_measured(run_course: Run, folder: Path) -> None:
    write(folder, right().replace("if x.shape[1] == 0:", "if state is not None:"))
    done = run_course("bench", "running_mean", "--quick", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert [row[1] for row in rows(done.stdout)[:3]] == ["–"] * 3
    assert "one more, from 2: Your code raised ValueError on line" in done.stdout
    assert all(float(row[1]) > 0 for row in rows(done.stdout)[3:])


def test_nothing_written_is_said_in_one_sentence(run_course: Run, folder: Path) -> None:
    done = run_course("bench", "running_mean", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "Nothing of running_mean is written yet: there is nothing to measure.\n"
        "Next: fill the first stub of 02_running_mean, then: course check running_mean\n"
    )


def test_an_exercise_without_a_measurement_names_one_that_has_one(run_course: Run, folder: Path) -> None:
    done = run_course("bench", "mean_and_spread", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "course: mean_and_spread has nothing to measure. Next: course bench running_mean\n"


def test_in_the_instructors_repository_the_reference_stands_in(run_course: Run, folder: Path) -> None:
    shutil.copytree(STREAMS / "solutions", folder / "solutions")
    done = run_course("bench", "running_mean", "--quick", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("(the reference: nothing is written here)") == 2


@pytest.mark.gpu
def test_on_a_gpu_it_names_the_device(run_course: Run, folder: Path) -> None:
    write(folder, right())
    done = run_course("bench", "running_mean", "--quick", "--device", "cuda", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cuda: ")
    assert all(float(row[1]) > 0 for row in rows(done.stdout))
