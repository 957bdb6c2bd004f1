"""A stopped run continues, and a repeated run grades only changed attempts."""

import json
import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress

import pytest

from manyheads.box.host_processes import has_ended, pids
from manyheads.course import load_course
from manyheads.judge.judge_process import GradePlan
from manyheads.judge.results_folder import JOURNAL, Keys, Record
from manyheads.submission import find_submissions
from tests import make
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, REPOSITORY, TINY, copy_course, hand_in
from tests.warm import run_warm

pytestmark = pytest.mark.journey

LOOP = "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n"
NEW_CHECK = '''

@check(points=0, layer="values")
def test_new(attempt):
    """is there"""
    attempt.last_mean(torch.ones(3))
'''


class Run:
    """`course grade` of a class at one course, into one folder."""

    def __init__(self, folder, course):
        self.submitted, self.out, self.course = folder / "submitted", folder / "out", course
        secret = course / ".course" / "secret"  # the same inputs in each copy of the course
        secret.parent.mkdir(mode=0o700, exist_ok=True)
        secret.write_text("0123456789abcdef" * 4)
        secret.chmod(0o600)

    def arguments(self, *options, jobs=1):
        folders = (self.submitted, "--out", self.out, "--course", self.course)
        return ["grade", *map(str, folders), "--jobs", str(jobs), *options]

    def start(self, jobs=1):
        """Start the command as the leader of a process group."""
        return make.start(*make.COURSE, *self.arguments("--seed", "7", jobs=jobs))

    def finish(self, *options, status=0):
        """Run the command to its end, and return its output."""
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
        arguments = self.arguments(*options)
        completed = run_warm("manyheads", arguments, self.out.parent, environment)
        assert completed.returncode == status, completed.stdout + completed.stderr
        return completed.stdout

    def graded(self, *options):
        """Run to the end. Return the number of submissions, and the exercises that were graded."""
        earlier = self.journal()
        output = self.finish(*options)
        summary = re.findall(r"^(\d+ submissions.*?) in \d", output, re.MULTILINE)[-1]
        return summary, sorted(self.journal()[len(earlier) :])

    def journal(self):
        """Return the lines of the journal: a submission, and the ids of its graded exercises."""
        path = self.out / JOURNAL
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines if line]
        return [[name, *filter(None, ids)] for name, ids in entries]

    def results(self):
        return {path.parent.name: path.read_bytes() for path in sorted(self.out.glob("*/*.json"))}

    def exercises(self, student):
        """Return the exercises in the result of a student."""
        return json.loads((self.out / student / "averages.json").read_bytes())["exercises"]

    def wait_for_results(self, count, process):
        """Wait for this number of results, or for the end of the process."""
        while len(self.results()) < count and process.poll() is None:
            time.sleep(0.005)


@pytest.fixture
def class_run(tiny_copy, tmp_path):
    hand_in(tmp_path / "submitted", CLASS)
    return Run(tmp_path, tiny_copy)


def test_only_a_changed_attempt_or_a_missing_result_is_graded_again(class_run):
    assert class_run.graded("--seed", "7")[0] == "5 submissions"
    first_results = class_run.results()
    assert class_run.graded() == ("5 submissions (5 as before)", [])
    assert class_run.results() == first_results
    hand_in(class_run.submitted, {"ben": RIGHT})
    (class_run.out / "cat" / "averages.json").unlink()
    output = class_run.finish()
    assert "5 submissions (3 as before) in" in output
    assert "points changed since the last run: ben 2 → 4\n" in output
    results = class_run.results()
    assert {s for s in first_results if results[s] != first_results[s]} == {"ben"}
    assert class_run.graded("--seed", "8")[0] == "5 submissions"


def test_only_new_exercises_and_changed_checks_are_graded(class_run):
    shutil.rmtree(class_run.submitted)
    hand_in(class_run.submitted, {"ada": RIGHT, "ben": RIGHT})
    class_run.finish("--seed", "7")
    (first_exercise,) = class_run.exercises("ada")
    course_yaml = (class_run.course / "course.yaml").read_text()
    make.with_last_mean(class_run.course)
    both = [["ada/averages", "last_mean"], ["ben/averages", "last_mean"]]
    assert class_run.graded() == ("2 submissions (2 in part)", both)
    assert class_run.exercises("ada")[0] == first_exercise
    assert [exercise["score"] for exercise in class_run.exercises("ada")] == [4, 0]
    make.add("grader/checks/test_last_mean.py", NEW_CHECK)(class_run.course)
    assert class_run.graded() == ("2 submissions (2 in part)", both)
    assert class_run.exercises("ada")[1]["checks"][-1]["title"] == "is there"
    late = class_run.submitted / "ada" / "averages" / "02_last_mean.py"
    late.write_text(RIGHT.replace("running", "last"))
    assert class_run.graded() == ("2 submissions (1 as before, 1 in part)", both[:1])
    assert [exercise["score"] for exercise in class_run.exercises("ada")] == [4, 4]
    late.unlink()
    (class_run.course / "course.yaml").write_text(course_yaml)
    assert class_run.graded() == ("2 submissions (2 as before)", [])
    assert class_run.exercises("ada") == [first_exercise]


def test_a_journal_entry_counts_only_for_the_same_key_and_result(class_run):
    course = load_course(class_run.course)
    (submission, *_), _ = find_submissions(course, class_run.submitted)
    (exercise,) = submission.assignment.exercises
    result = make.result(submission.student, make.exercise("running_mean", score=4, max_score=4))
    keys = Keys(course, GradePlan(b"secret", course=class_run.course))
    class_run.out.mkdir()
    Record(class_run.out, keys).note(submission, {"running_mean": "k"}, result)
    has_noted = Record(class_run.out, keys).has_noted
    (noted,) = result.exercises
    assert has_noted(submission, exercise, "k", noted)
    assert not has_noted(submission, exercise, "other", noted)
    assert not has_noted(submission, exercise, "k", noted.model_copy(update={"score": 3.0}))


def test_ctrl_c_stops_at_once_and_the_next_run_continues(class_run):
    hand_in(class_run.submitted, {"zoe": LOOP})
    process = class_run.start()
    class_run.wait_for_results(5, process)  # the sixth loops
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert re.search(
        "Stopped: [45] of 6 submissions are graded. Next: run the same command again", output
    )
    assert "Traceback" not in output
    wait_until_gone(process.pid)
    hand_in(class_run.submitted, {"zoe": RIGHT})
    assert re.search(r"6 submissions \([45] as before\)", class_run.finish("--seed", "7"))


def test_the_next_run_completes_a_killed_one(class_run, uninterrupted_results):
    process = class_run.start(jobs=2)
    class_run.wait_for_results(1, process)
    kill_group(process)
    class_run.finish("--seed", "7")
    assert class_run.results() == uninterrupted_results


@pytest.mark.soak
def test_a_run_that_is_killed_fifty_times_ends_with_the_same_results(
    class_run, uninterrupted_results
):
    draw = random.Random(0)
    for _ in range(50):
        process = class_run.start(jobs=2)
        time.sleep(draw.uniform(0.0, 6.0))
        kill_group(process)
        if draw.random() < 0.3:  # so that there is always something to grade
            (class_run.out / JOURNAL).unlink(missing_ok=True)
    class_run.finish("--seed", "7")
    assert class_run.results() == uninterrupted_results


def kill_group(process):
    """Kill a command and its judges."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.fixture(scope="module")
def uninterrupted_results(tmp_path_factory):
    """Return the results of a run that is not interrupted."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    hand_in(folder / "submitted", CLASS)
    run = Run(folder, copy_course(TINY, folder / "course"))
    run.finish("--seed", "7")
    return run.results()


def wait_until_gone(group, seconds=60.0):
    """Wait for the end of a process group: some processes end a moment after their parent."""
    ends = time.monotonic() + seconds
    while running := [pid for pid in pids() if group_of(pid) == group and not has_ended(pid)]:
        assert time.monotonic() < ends, running
        time.sleep(0.01)


def group_of(pid):
    """Return the group of a process, or 0 if it has ended."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0
