"""A run that is stopped goes on where it stopped; a run that is repeated grades only what changed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from manyheads.batch.journal import NAME, open_journal
from manyheads.batch.plan import GradePlan
from manyheads.box.procstat import has_ended, pids
from manyheads.course import load_course
from manyheads.submission import find_submissions
from tests.copies import copy_course
from tests.warm import run_warm

pytestmark = pytest.mark.journey

REPOSITORY = Path(__file__).parents[2]
RIGHT = (
    "import torch\n\n\ndef running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
)
CLASS = {
    "ada": RIGHT,
    "ben": RIGHT.replace("x.new_ones(len(x)).cumsum(0)", "len(x)"),
    "cat": "import os\n\n\ndef running_mean(x):\n    os._exit(0)\n",
    "dan": "def running_mean(x:\n",
    "eve": RIGHT.replace("x.cumsum(0)", "x.detach().cumsum(0)"),
}
LOOP = "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n"

Results = dict[str, bytes]
Run = Callable[..., subprocess.CompletedProcess[str]]


def hand_in(folder: Path, attempts: dict[str, str]) -> Path:
    for student, source in attempts.items():
        path = folder / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{source}# {student}\n", encoding="utf-8")  # the same text would be judged once
    return folder


def results_in(out: Path) -> Results:
    return {path.parent.name: path.read_bytes() for path in sorted(out.glob("*/*.json"))}


def grading(course: Path, submitted: Path, out: Path, jobs: int) -> list[str]:
    return [*map(str, ("grade", submitted, "--out", out, "--course", course, "--jobs", jobs))]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}


def start(course: Path, submitted: Path, out: Path, jobs: int = 1) -> subprocess.Popen[str]:
    """`course grade` as the leader of a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "manyheads", *grading(course, submitted, out, jobs)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def grade_all_of(course: Path, submitted: Path, out: Path) -> str:
    """What `course grade` says where nobody disturbs it."""
    return run_warm("manyheads", grading(course, submitted, out, 1), out.parent, environment()).stdout


def wait_for_results(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(results_in(out)) < count and process.poll() is None:
        time.sleep(0.005)


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "submitted", CLASS)


def test_only_what_changed_is_graded_again(run_course: Run, tiny_copy: Path, submitted: Path, tmp_path: Path) -> None:
    def grade(*options: str) -> str:
        done = run_course("grade", submitted, "--out", out, "--course", tiny_copy, "--jobs", "1", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-1]

    out = tmp_path / "out"
    assert "5 submissions in" in grade()
    first = results_in(out)
    assert "5 submissions (5 as before) in" in grade()
    assert results_in(out) == first
    hand_in(submitted, {"ben": RIGHT})
    (out / "cat" / "averages.json").unlink()
    assert "5 submissions (3 as before) in" in grade()
    mended = results_in(out)
    assert {s for s in first if mended[s] != first[s]} == {"ben"}
    assert "5 submissions in" in grade("--regrade")
    assert results_in(out) == mended


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("grader/checks/test_running_mean.py", id="a check"),
        pytest.param("grader/misconceptions/running_mean.py", id="a mutant"),
        pytest.param("grader/texts.yaml", id="a word"),
        pytest.param("solutions/averages/01_running_mean.py", id="the reference"),
        pytest.param("exercises/averages/01_running_mean.py", id="the stub"),
    ],
)
def test_what_a_result_is_made_from_is_in_its_key(tiny_copy: Path, submitted: Path, change: str) -> None:
    plan, course = GradePlan(tiny_copy, b"secret"), load_course(tiny_copy)
    (submission, *_), _ = find_submissions(course, submitted)
    before = open_journal(tiny_copy, course, plan).key(submission)
    assert open_journal(tiny_copy, course, plan).key(submission) == before
    with (tiny_copy / change).open("a") as file:
        file.write("\n# changed\n")
    assert open_journal(tiny_copy, course, plan).key(submission) != before


def test_how_it_is_graded_is_in_its_key(tiny_copy: Path, submitted: Path) -> None:
    course = load_course(tiny_copy)
    (first, second, *_), _ = find_submissions(course, submitted)
    plans = [GradePlan(tiny_copy, b"secret"), GradePlan(tiny_copy, b"other"), GradePlan(tiny_copy, b"secret", seed=1)]
    plans.append(GradePlan(tiny_copy, b"secret", exercises=("running_mean",)))
    plans.append(GradePlan(tiny_copy, b"secret", lines=False))
    keys = {open_journal(tiny_copy, course, plan).key(s) for plan in plans for s in (first, second)}
    assert len(keys) == 10


def test_a_torn_line_costs_one_submission(tiny_copy: Path, submitted: Path, tmp_path: Path) -> None:
    plan, course = GradePlan(tiny_copy, b"secret"), load_course(tiny_copy)
    submissions, _ = find_submissions(course, submitted)
    journal = open_journal(tmp_path, course, plan)
    for submission in submissions[:2]:
        journal.note(submission, journal.key(submission))
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-20])
    journal.note(submissions[2], journal.key(submissions[2]))
    assert set(open_journal(tmp_path, course, plan).lines) == {"ada/averages", "cat/averages"}


def test_ctrl_c_stops_at_once_and_the_next_run_goes_on(tiny_copy: Path, submitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hand_in(submitted, {"zoe": LOOP})
    process = start(tiny_copy, submitted, out)
    wait_for_results(out, 5, process)  # the sixth loops
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert re.search("Stopped: [45] of 6 submissions are graded. Next: run the same command again", said)
    assert "Traceback" not in said
    wait_until_gone(process.pid)
    hand_in(submitted, {"zoe": RIGHT})
    assert re.search(r"6 submissions \([45] as before\)", grade_all_of(tiny_copy, submitted, out))


@pytest.mark.parametrize("moment", [1])  # `make soak` tries fifty
def test_a_run_that_is_killed_is_completed_by_the_next(
    tiny_copy: Path, submitted: Path, tmp_path: Path, undisturbed: Results, moment: int
) -> None:
    out = tmp_path / "out"
    process = start(tiny_copy, submitted, out, jobs=2)
    wait_for_results(out, moment, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    grade_all_of(tiny_copy, submitted, out)
    assert results_in(out) == undisturbed


@pytest.mark.soak
def test_a_run_that_is_killed_fifty_times_ends_with_the_same_results(
    tiny_copy: Path, submitted: Path, tmp_path: Path, undisturbed: Results
) -> None:
    draw, out = random.Random(0), tmp_path / "out"
    for _ in range(50):
        process = start(tiny_copy, submitted, out, jobs=2)
        time.sleep(draw.uniform(0.0, 6.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if draw.random() < 0.3:  # so that there is always something to grade
            (out / NAME).unlink(missing_ok=True)
    start(tiny_copy, submitted, out).communicate(timeout=120)
    assert results_in(out) == undisturbed


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the class earns where nobody interferes, with the secret that every copy below is given."""
    root = tmp_path_factory.mktemp("undisturbed")
    course = root / "course"
    copy_course(REPOSITORY / "tests" / "tiny_course", course)
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


def wait_until_gone(group: int, seconds: float = 10.0) -> None:
    """A process that ends with its parent (multiprocessing's resource tracker) may do so a moment after it."""
    ends = time.monotonic() + seconds
    while left := left_in_group(group):
        assert time.monotonic() < ends, left
        time.sleep(0.01)


def left_in_group(group: int) -> list[int]:
    """Processes of that group that still run."""
    return [pid for pid in pids() if group_of(pid) == group and not has_ended(pid)]


def group_of(pid: int) -> int:
    """0 where it is gone."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


@pytest.mark.parametrize(
    ("added", "same"),
    [
        pytest.param("# a comment\n", True, id="a comment"),
        pytest.param(
            "time_zone: UTC\nlate: {per_day: 10%}\nnot_handed_in: zero\n", True, id="what decides about results"
        ),
        pytest.param("title: Other averages\n", False, id="anything else"),
    ],
)
def test_dates_are_no_reason_to_grade_again(tiny_copy: Path, submitted: Path, added: str, same: bool) -> None:
    plan = GradePlan(tiny_copy, b"secret")
    (submission, *_), _ = find_submissions(load_course(tiny_copy), submitted)
    before = open_journal(tiny_copy, load_course(tiny_copy), plan).key(submission)
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace("title: Averages\n\n", "\n") + ("" if "title" in added else "title: Averages\n")
    path.write_text(text.replace("    title: Averages\n", "    title: Averages\n    due: 2026-12-01 18:00Z\n") + added)
    after = open_journal(tiny_copy, load_course(tiny_copy), plan).key(submission)
    assert (after == before) is same
