"""A run that is stopped goes on where it stopped; a run that is repeated grades only what
changed.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from manyheads.box.host_processes import has_ended, pids
from manyheads.course import load_course
from manyheads.judge.judge_process import GradePlan
from manyheads.judge.results_folder import JOURNAL, Keys, Record
from manyheads.submission import find_submissions
from tests import make
from tests.conftest import Run
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, REPOSITORY, TINY, copy_course, hand_in
from tests.warm import run_warm

pytestmark = pytest.mark.journey

LOOP = "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n"

Results = dict[str, bytes]


def hand_in_one(path: Path, source: str, student: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # the same text would be judged once
    path.write_text(f"{source}# {student}\n", encoding="utf-8")


def results_in(out: Path) -> Results:
    return {path.parent.name: path.read_bytes() for path in sorted(out.glob("*/*.json"))}


def grade_arguments(course: Path, submitted: Path, out: Path, jobs: int) -> list[str]:
    return [
        *map(
            str, ("grade", submitted, "--out", out, "--course", course, "--jobs", jobs, "--seed", 7)
        )
    ]


def start(course: Path, submitted: Path, out: Path, jobs: int = 1) -> subprocess.Popen[str]:
    """`course grade` as the leader of a process group of its own."""
    return make.start(*make.COURSE, *grade_arguments(course, submitted, out, jobs))


def grade_all_of(course: Path, submitted: Path, out: Path) -> str:
    """What `course grade` says where nobody disturbs it."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    return run_warm(
        "manyheads", grade_arguments(course, submitted, out, 1), out.parent, environment
    ).stdout


def grade_output(run_course: Run, course: Path, submitted: Path, out: Path, *options: str) -> str:
    """The output of `course grade` with one judge, which must end without a fault."""
    arguments = ("--out", out, "--course", course, "--jobs", "1")
    completed = run_course("grade", submitted, *arguments, *options)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def wait_for_results(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(results_in(out)) < count and process.poll() is None:
        time.sleep(0.005)


@pytest.fixture
def submissions_folder(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "submitted", CLASS)


def test_only_what_changed_is_graded_again(
    run_course: Run, tiny_copy: Path, submissions_folder: Path, tmp_path: Path
) -> None:
    def grade(*options: str) -> str:
        return grade_output(run_course, tiny_copy, submissions_folder, out, *options)

    out = tmp_path / "out"
    assert "5 submissions in" in grade()
    first_results = results_in(out)
    assert "5 submissions (5 as before) in" in grade()
    assert results_in(out) == first_results
    hand_in(submissions_folder, {"ben": RIGHT})
    (out / "cat" / "averages.json").unlink()
    output = grade()
    assert "5 submissions (3 as before) in" in output
    assert "points changed since the last run: ben 2 → 4\n" in output
    mended = results_in(out)
    assert {s for s in first_results if mended[s] != first_results[s]} == {"ben"}
    (seed,) = {json.loads(path.read_bytes())["seed"] for path in out.glob("*/*.json")}
    assert "5 submissions in" in grade("--seed", str(seed + 1))
    assert "5 submissions in" in grade("--seed", str(seed))
    assert results_in(out) == mended, "graded again with the same seed it is the same"


def test_what_is_new_or_changed_is_graded_and_nothing_else_again(
    run_course, tiny_copy, submissions_folder, tmp_path
):
    out = tmp_path / "out"

    def grade(*options: str) -> tuple[str, list[list[str]]]:
        """What it says, and which exercises were graded: of each submission a line of the
        journal.
        """
        earlier = noted_in(out)
        output = grade_output(run_course, tiny_copy, submissions_folder, out, *options)
        summary = re.split(r" in \d", output.splitlines()[-2])[0]
        return summary, noted_in(out)[len(earlier) :]

    shutil.rmtree(submissions_folder)
    hand_in(submissions_folder, {"ada": RIGHT, "ben": RIGHT})
    for folder, stem in (("averages", "02_other_mean"), ("sums", "01_last_mean")):
        for student in ("ada", "ben"):
            hand_in_one(submissions_folder / student / folder / f"{stem}.py", RIGHT, student)
    write_exercises(tiny_copy, {"averages": ["running_mean"]})
    (submissions_folder / "ada" / "averages" / "02_other_mean.py").rename(tmp_path / "later.py")
    # files of no exercise
    assert (
        run_course("grade", submissions_folder, "--out", out, "--course", tiny_copy).returncode == 1
    )
    first_exercises = {
        path: json.loads(path.read_bytes())["exercises"] for path in out.glob("*/averages.json")
    }
    assert len(first_exercises) == 2

    write_exercises(tiny_copy, {"averages": ["running_mean", "other_mean"], "sums": ["last_mean"]})
    summary, graded = grade()
    assert summary == "4 submissions (2 in part)"
    new = (("averages", "other_mean"), ("sums", "last_mean"))
    assert sorted(graded) == sorted([f"{s}/{a}", id_] for s in ("ada", "ben") for a, id_ in new)
    for path, exercises in first_exercises.items():
        result = json.loads(path.read_bytes())
        assert result["exercises"][:1] == exercises
        assert result["max_score"] == 8
        assert result["score"] == sum(exercise["score"] for exercise in result["exercises"])

    with (tiny_copy / "grader" / "checks" / "test_other_mean.py").open("a") as file:
        file.write(
            '\n\n@check(points=0, layer="values")\ndef test_new(attempt):\n    """is there"""\n'
        )
        file.write("    attempt.running_mean(torch.ones(3))\n")
    summary, graded = grade()
    assert summary == "4 submissions (2 as before, 2 in part)"
    assert sorted(graded) == [[f"{s}/averages", "other_mean"] for s in ("ada", "ben")]
    checks = json.loads((out / "ada" / "averages.json").read_bytes())["exercises"][1]["checks"]
    assert [check["title"] for check in checks][-1] == "is there"

    (tmp_path / "later.py").rename(submissions_folder / "ada" / "averages" / "02_other_mean.py")
    summary, graded = grade()
    assert (summary, graded) == (
        "4 submissions (3 as before, 1 in part)",
        [["ada/averages", "other_mean"]],
    )
    assert json.loads((out / "ada" / "averages.json").read_bytes())["score"] == 8
    write_exercises(tiny_copy, {"averages": ["running_mean"], "sums": ["last_mean"]})
    for path in submissions_folder.glob("*/averages/02_*"):
        path.unlink()
    assert grade() == ("4 submissions (4 as before)", [])
    (submissions_folder / "ada" / "averages" / "notes.txt").write_text(
        "not of the assignment that is graded now"
    )
    assert grade("--assignment", "Sums") == ("2 submissions (2 as before)", [])
    assert {
        path: json.loads(path.read_bytes())["exercises"] for path in out.glob("*/averages.json")
    } == first_exercises


def noted_in(out: Path) -> list[list[str]]:
    """The lines of the journal: a submission, and ids of exercises."""
    path = out / JOURNAL
    lines = (
        [json.loads(line) for line in path.read_text().splitlines() if line]
        if path.exists()
        else []
    )
    return [[name, *filter(None, noted)] for name, noted in lines]


def write_exercises(course: Path, ids: dict[str, list[str]]) -> None:
    """A course of these exercises, by assignment: each asks what the tiny course's only one
    asks.
    """
    rows = []
    for assignment, names in ids.items():
        exercises = [row(name) for name in names]
        rows.append({"id": assignment, "title": assignment.title(), "exercises": exercises})
    (course / "course.yaml").write_text(yaml.safe_dump({"title": "Averages", "assignments": rows}))
    reference = (TINY / "solutions/averages/01_running_mean.py").read_bytes()
    checks = (TINY / "grader/checks/test_running_mean.py").read_bytes()
    for assignment, names in ids.items():
        for number, id_ in enumerate(names, 1):
            path = course / "solutions" / assignment / f"{number:02d}_{id_}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(reference)
            (course / "grader" / "checks" / f"test_{id_}.py").write_bytes(checks)


def row(id_: str) -> dict[str, object]:
    return {"id": id_, "title": id_.replace("_", " "), "points": 4, "hint": "?"}


def test_an_entry_is_good_for_the_result_that_it_was_written_with(
    tiny_copy, submissions_folder, tmp_path
):
    course = load_course(tiny_copy)
    (submission, *_), _ = find_submissions(course, submissions_folder)
    (exercise,) = submission.assignment.exercises
    result = make.result(submission.student, make.exercise("running_mean", score=4, max_score=4))
    keys = Keys(course, GradePlan(b"secret", course=tiny_copy))
    Record(tmp_path, keys).note(submission, {"running_mean": "k"}, result)
    record = Record(tmp_path, keys)
    (exercise_result,) = result.exercises
    assert record.has_noted(submission, exercise, "k", exercise_result)
    assert not record.has_noted(submission, exercise, "other", exercise_result)
    assert not record.has_noted(
        submission, exercise, "k", exercise_result.model_copy(update={"score": 3.0})
    )


def test_ctrl_c_stops_at_once_and_the_next_run_goes_on(
    tiny_copy: Path, submissions_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    hand_in(submissions_folder, {"zoe": LOOP})
    process = start(tiny_copy, submissions_folder, out)
    wait_for_results(out, 5, process)  # the sixth loops
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert re.search(
        "Stopped: [45] of 6 submissions are graded. Next: run the same command again", output
    )
    assert "Traceback" not in output
    wait_until_gone(process.pid)
    hand_in(submissions_folder, {"zoe": RIGHT})
    assert re.search(
        r"6 submissions \([45] as before\)", grade_all_of(tiny_copy, submissions_folder, out)
    )


@pytest.mark.parametrize("moment", [1])  # `make soak` tries fifty
def test_a_run_that_is_killed_is_completed_by_the_next(
    tiny_copy, submissions_folder, tmp_path, undisturbed_results, moment
):
    out = tmp_path / "out"
    process = start(tiny_copy, submissions_folder, out, jobs=2)
    wait_for_results(out, moment, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    grade_all_of(tiny_copy, submissions_folder, out)
    assert results_in(out) == undisturbed_results


@pytest.mark.soak
def test_a_run_that_is_killed_fifty_times_ends_with_the_same_results(
    tiny_copy, submissions_folder, tmp_path, undisturbed_results
):
    draw, out = random.Random(0), tmp_path / "out"
    for _ in range(50):
        process = start(tiny_copy, submissions_folder, out, jobs=2)
        time.sleep(draw.uniform(0.0, 6.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if draw.random() < 0.3:  # so that there is always something to grade
            (out / JOURNAL).unlink(missing_ok=True)
    start(tiny_copy, submissions_folder, out).communicate(timeout=120)
    assert results_in(out) == undisturbed_results


@pytest.fixture(scope="module")
def undisturbed_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the class earns where nobody interferes, with the secret that every copy below is
    given.
    """
    root = tmp_path_factory.mktemp("undisturbed")
    course = root / "course"
    copy_course(TINY, course)
    plant_secret(course)
    out = root / "out"
    grade_all_of(course, hand_in(root / "submitted", CLASS), out)
    return results_in(out)


@pytest.fixture(autouse=True)
def same_secret(tiny_copy: Path) -> None:
    plant_secret(tiny_copy)


def plant_secret(course: Path) -> None:
    path = course / ".course" / "secret"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text("0123456789abcdef" * 4)
    path.chmod(0o600)


def wait_until_gone(group: int, seconds: float = 60.0) -> None:
    """A process that ends with its parent (multiprocessing's resource tracker) may do so a moment
    after it.
    """
    ends = time.monotonic() + seconds
    while running := [pid for pid in pids() if group_of(pid) == group and not has_ended(pid)]:
        assert time.monotonic() < ends, running
        time.sleep(0.01)


def group_of(pid: int) -> int:
    """0 where it is gone."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0
