"""The whole way of a course with structures and states: released, verified, checked, graded under pseudonyms."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_watch import Terminal
from tests.copies import copy_course
from tests.structures.conftest import STREAMS

pytestmark = [pytest.mark.journey, pytest.mark.recorded]

Run = Callable[..., subprocess.CompletedProcess[str]]
MutantOf = Callable[[str, str], str]
SCRIPT = "exercises/streams/02_running_mean.py"
RIGHT = (STREAMS / "grader" / "right" / "running_mean" / "keeps_tokens.py").read_text(encoding="utf-8")
REPOSITORY = Path(__file__).parents[2]


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


def test_every_save_is_checked(course: Path, mutant_of: MutantOf) -> None:
    terminal = Terminal(course, "running_mean")
    terminal.read_until("Ctrl-C ends this")

    def save(text: str) -> None:
        new = course / SCRIPT.replace("02_running_mean.py", ".saving")
        new.write_text(text, encoding="utf-8")
        new.replace(course / SCRIPT)

    wrong = mutant_of("running_mean", "state_alone")
    save(wrong)
    assert "without the state" in terminal.read_until("Ctrl-C ends this")
    save(RIGHT)
    assert "✓ 02 A running mean that goes on" in terminal.read_until("All done|Ctrl-C ends this")
    terminal.interrupt()


def test_a_class_is_graded_under_pseudonyms(run_course: Run, course: Path, tmp_path: Path, mutant_of: MutantOf) -> None:
    for student, text in {"ada": RIGHT, "ben": mutant_of("running_mean", "state_changed")}.items():
        folder = tmp_path / "submitted" / student / "streams"
        folder.mkdir(parents=True)
        (folder / "02_running_mean.py").write_text(text)
    out = tmp_path / "out"
    done = run_course("grade", tmp_path / "submitted", "--out", out, "--anonymous", "--jobs", "1", cwd=course)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    results = [json.loads(path.read_text()) for path in out.glob("*/streams.json")]
    named = {r["exercises"][1]["score"]: [d["id"] for d in r["exercises"][1]["diagnosis"]] for r in results}
    assert named == {5.0: [], 4.0: ["state_changed"]}
    assert run_course("report", out, "--students", cwd=course).returncode == 0


def test_hidden_checks_run_by_hand(course: Path) -> None:
    checks = course / "grader" / "checks" / "test_running_mean.py"
    attempt = course / "02_running_mean.py"
    attempt.write_text(RIGHT)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pytest", "-q", str(checks), "--attempt", str(attempt)]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "5 passed" in done.stdout) == (0, True), done.stdout
