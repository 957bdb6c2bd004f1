"""The way of a course with structures and states: released, verified, checked."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.copies import copy_course
from tests.structures.conftest import STREAMS

pytestmark = [pytest.mark.journey, pytest.mark.recorded]

Run = Callable[..., subprocess.CompletedProcess[str]]
MutantOf = Callable[[str, str], str]
SCRIPT = "exercises/streams/02_running_mean.py"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return copy_course(STREAMS, tmp_path / "streams")


def test_every_promise_holds(run_course: Run, course: Path) -> None:
    released = run_course("release", cwd=course)
    assert "6 files in" in released.stdout
    assert "all left as they were" in released.stdout
    verified = run_course("verify", "--seeds", "1", cwd=course)
    assert (verified.returncode, verified.stderr) == (0, ""), verified.stdout


def test_a_student_sees_the_call_that_goes_wrong(run_course: Run, course: Path, mutant_of: MutantOf) -> None:
    (course / SCRIPT).write_text(mutant_of("running_mean", "state_ignored"))
    checked = run_course("check", "running_mean", cwd=course)
    assert checked.returncode == 1
    assert "You started anew with every chunk." in checked.stdout
    assert "means of call 2" in checked.stdout
    traced = run_course("trace", "running_mean", cwd=course).stdout
    assert "RunningMean(width=3)(x), then (x, state)" in traced
    assert "means of call 1 (B, T, C): the right numbers" in " ".join(traced.split())
    plotted = run_course("plot", "running_mean", cwd=course)
    assert plotted.returncode == 0, plotted.stderr
    assert "means of call 2" in plotted.stdout
    assert "02 A running mean that goes on" in run_course("status", cwd=course).stdout
