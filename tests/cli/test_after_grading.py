"""`course compare` as an instructor, or a script, runs it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.result import CheckResult, ExerciseResult, Result, write_result

Run = Callable[..., subprocess.CompletedProcess[str]]
TINY = Path(__file__).parents[1] / "tiny_course"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two runs, in the later of which ada has lost a check."""
    shutil.copy(TINY / "course.yaml", tmp_path)
    for run, score in (("monday", 2.0), ("tuesday", 0.0)):
        check = CheckResult(
            id="mean", title="averages", outcome="passed" if score else "failed", score=score, max_score=2
        )
        exercise = ExerciseResult(id="running_mean", score=score, max_score=2, checks=(check,))
        write_result(
            Result(student="ada", assignment="averages", score=score, max_score=2, device="cpu",
                   isolation="namespaces", seed=0, versions={}, exercises=(exercise,)),
            tmp_path / run,
        )  # fmt: skip
    return tmp_path


def test_compare_shows_each_submission_and_then_the_whole(run_course: Run, runs: Path) -> None:
    done = run_course("compare", "monday", "tuesday")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Averages\n↓ ada: 2 → 0 / 2\n  01 The running mean  averages  2 → 0 / 2")
    assert done.stdout.endswith("Submissions: 1 down\n")


def test_summary_leaves_submissions_out(run_course: Run, runs: Path) -> None:
    done = run_course("compare", "monday", "tuesday", "--summary")
    assert "ada" not in done.stdout
    assert "01 The running mean  averages  1 down" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "status"), [("monday", "tuesday", 1), ("tuesday", "monday", 0), ("monday", "monday", 0)]
)
def test_fail_on_drop_is_status_1_where_something_was_lost(
    run_course: Run, runs: Path, old: str, new: str, status: int
) -> None:
    assert run_course("compare", old, new, "--fail-on-drop").returncode == status


def test_a_run_that_cannot_be_read_whole_is_not_compared(run_course: Run, runs: Path) -> None:
    (runs / "tuesday" / "ada" / "averages.json").write_text("{")
    done = run_course("compare", "monday", "tuesday", "--fail-on-drop")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "course: tuesday/ada/averages.json is not a result. Next: remove it, then course grade again\n"
    )
    done = run_course("compare", "monday", "wednesday")
    assert done.returncode == 2
    assert done.stderr.startswith("course: wednesday holds no results. Next: course grade ")
