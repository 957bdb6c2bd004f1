"""Totals are what course.yaml says, what the grader could not do is no 0, and a run is drawn from one seed of its own."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.make import replace

FIRST, SECOND = "running_mean", "last_mean"  # of 4 points each
NEXT = "Nobody is graded. Next: course verify running_mean"


@pytest.fixture
def submitted(two_means: Path, tmp_path: Path) -> Path:
    """Two students who hand in the solutions."""
    for student in ("ada", "ben"):
        folder = tmp_path / "submitted" / student / "averages"
        folder.mkdir(parents=True)
        for path in (two_means / "solutions" / "averages").glob("*.py"):
            (folder / path.name).write_text(f"{path.read_text(encoding='utf-8')}# {student}\n", encoding="utf-8")
    return tmp_path / "submitted"


def checks_of(course: Path) -> Path:
    return course / "grader" / "checks" / "test_running_mean.py"


def rename_a_check(course: Path) -> None:
    replace(checks_of(course), "def test_shape(", "def checks_shape(")


def empty(course: Path) -> None:
    checks_of(course).write_text("", encoding="utf-8")


def fail_by_itself(course: Path) -> None:
    replace(checks_of(course), "    x, g = draw(6), draw(6)", "    x = 1 / 0")


def die_at_ada(course: Path) -> None:
    """As a judge does that the kernel kills: whatever ada hands in, at one of this exercise's checks."""
    kill = "import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    seen = "    if not attempt.call('running_mean', draw(6)).reply.outputs:\n        "
    replace(checks_of(course), "    x, g =", f"{seen}{kill.replace('    os', '        os')}    x, g =")


def result_of(out: Path, student: str = "ada") -> dict:  # type: ignore[type-arg]
    found: dict = json.loads((out / student / "averages.json").read_text(encoding="utf-8"))  # type: ignore[type-arg]
    return found


def points_in(out: Path, student: str = "ada") -> list[float | None]:
    found = result_of(out, student)
    return [found["score"], *(each["score"] for each in found["exercises"])]


@pytest.mark.parametrize(("spoil", "said"), [
    pytest.param(rename_a_check, "its checks give 3 points", id="a check that pytest does not take for one"),
    pytest.param(empty, "nothing was collected from grader/checks/test_running_mean.py", id="no check at all"),
])  # fmt: skip
def test_where_points_do_not_add_up_nobody_is_graded_and_verify_says_so(run_course, two_means, submitted, spoil, said):
    spoil(two_means)
    done = run_course("grade", submitted, "--out", "out", cwd=two_means)
    assert (done.returncode, done.stderr) == (2, f"course: {FIRST}: {said}, course.yaml says 4. {NEXT}\n")
    assert not (two_means / "out").exists()
    verified = run_course("verify", FIRST, cwd=two_means)
    assert (verified.returncode, verified.stderr) == (1, "")
    assert verified.stdout.startswith("✗ points ")
    assert f"    {FIRST}: {said}, course.yaml says 4\n" in verified.stdout


def test_of_one_exercise_that_is_graded_alone_only_its_own_points_matter(run_course, two_means, submitted):
    rename_a_check(two_means)
    done = run_course("grade", submitted, "--exercise", SECOND, "--no-lines", cwd=two_means)
    assert done.returncode == 0, done.stdout + done.stderr
    assert points_in(two_means / "results") == [4, 4]
    assert run_course("grade", submitted, "--exercise", FIRST, cwd=two_means).returncode == 2


def test_a_check_that_fails_by_itself_leaves_its_exercise_ungraded_until_it_is_mended(run_course, two_means, submitted):
    whole = checks_of(two_means).read_bytes()
    fail_by_itself(two_means)
    done = run_course("grade", submitted, "--no-lines", cwd=two_means)
    assert done.returncode == 2, "a fault of the grader's own"
    assert "not graded: ada, ben: 01 The running mean: the grader itself failed here\n" in done.stdout
    assert "Next: the same course grade again" in done.stdout
    fault = "a fault of the grader's own: gradients: ZeroDivisionError: division by zero. Next: course verify"
    assert " ".join(done.stdout.split()).count("ZeroDivisionError") == " ".join(done.stdout.split()).count(fault) == 1
    assert points_in(two_means / "results") == [None, None, 4]
    exported = run_course("export", "--format", "canvas", cwd=two_means)
    assert exported.returncode == 1
    assert [line.rpartition(",")[2] for line in exported.stdout.splitlines()[1:]] == ["8", "", ""]
    assert exported.stderr.splitlines()[0] == "not graded: ada: 01 The running mean: the grader itself failed here"
    reported = run_course("report", "--students", cwd=two_means)
    assert [line.split() for line in reported.stdout.splitlines() if "?/8" in line] == [
        ["ada", "?", "4", "?/8"], ["ben", "?", "4", "?/8"]
    ]  # fmt: skip
    again = run_course("grade", submitted, "--no-lines", cwd=two_means)
    assert "2 submissions (2 in part)" in again.stdout, "what is not graded is tried again, and nothing else"
    checks_of(two_means).write_bytes(whole)
    mended = run_course("grade", submitted, "--no-lines", cwd=two_means)
    assert (mended.returncode, points_in(two_means / "results")) == (0, [8, 4, 4])
    assert run_course("export", "--format", "canvas", cwd=two_means).returncode == 0


def test_a_judge_that_dies_at_one_student_costs_the_others_nothing(run_course, two_means, submitted):
    replace(submitted / "ada" / "averages" / "01_running_mean.py", "def running_mean(", "def something_else(")
    die_at_ada(two_means)
    done = run_course("grade", submitted, "--no-lines", "--jobs", "1", cwd=two_means)
    assert done.returncode == 1
    assert "not graded: ada: 01 The running mean: the grader ended here before it was done, twice\n" in done.stdout
    assert (points_in(two_means / "results"), points_in(two_means / "results", "ben")) == ([None, None, 4], [8, 4, 4])
    again = run_course("grade", submitted, "--no-lines", "--jobs", "1", cwd=two_means)
    assert (again.returncode, "2 submissions (1 as before, 1 in part)" in again.stdout) == (1, True)


def seed_of(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.partition("seed: ")[2].partition(",")[0])


def test_a_run_has_a_seed_of_its_own_which_repeats_it(run_course: Run, two_means: Path, submitted: Path) -> None:
    def grade(out: str, *options: str) -> subprocess.CompletedProcess[str]:
        return run_course("grade", submitted, "--out", out, "--no-lines", *options, cwd=two_means)

    shutil.move(submitted / "ben", submitted.parent / "ben")
    seed = seed_of(grade("first"))
    first = (two_means / "first" / "ada" / "averages.json").read_bytes()
    assert result_of(two_means / "first")["seed"] == seed
    shutil.move(submitted.parent / "ben", submitted / "ben")
    later = grade("first")
    assert (seed_of(later), "(1 as before)" in later.stdout) == (seed, True)
    assert {result_of(two_means / "first", student)["seed"] for student in ("ada", "ben")} == {seed}
    assert (two_means / "first" / "ada" / "averages.json").read_bytes() == first
    assert seed_of(grade("second", "--seed", str(seed))) == seed
    assert (two_means / "second" / "ada" / "averages.json").read_bytes() == first
    assert seed_of(grade("first", "--seed", "0")) == 0
    assert {result_of(two_means / "first", student)["seed"] for student in ("ada", "ben")} == {0}


def test_one_exercise_that_is_graded_keeps_the_seed_of_the_others(run_course, two_means, submitted):
    def grade(*options: str) -> subprocess.CompletedProcess[str]:
        return run_course("grade", submitted, "--no-lines", *options, cwd=two_means)

    seed = seed_of(grade())
    assert seed_of(grade("--exercise", SECOND)) == seed
    assert points_in(two_means / "results") == [8, 4, 4]
    refused = grade("--exercise", SECOND, "--seed", str(seed + 1))
    assert refused.returncode == 2
    assert f"has the seed {seed}, and a result states one seed. Next: " in refused.stderr
    path = next((two_means / "results").glob("*/*.json"))
    path.write_text(path.read_text().replace("{", '{"questions": null,', 1))  # of another version
    assert grade("--exercise", SECOND).stderr.endswith("Next: course grade without --exercise or --only\n")
