"""One or several judges grade a class: results are equal, and a judge may die or be stopped."""

import gc
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack

import pytest

from manyheads.course import CourseError, load_course
from manyheads.judge.collect_checks import GraderFault
from manyheads.judge.judge_process import (
    GradePlan,
    WorkerLost,
    cpu_for_each_judge,
    grade_all,
    open_judge,
)
from manyheads.submission import find_submissions
from tests import make
from tests.make import BY_SUMS as RIGHT
from tests.make import TINY, cases, copy_course, hand_in, replace
from tests.warm import fork_judges

pytestmark = pytest.mark.usefixtures("warm_judges")

SECRET = b"a secret of these tests' own: 0123456789"
CLASS = make.CLASS | {
    "eve": None,
    "fay": "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n",
    "gus": "def running_mean(x):\n    raise NotImplementedError()\n",
}
SCORES = {"ada": 4, "ben": 2, "cat": 0, "dan": 0, "eve": 0, "fay": 0, "gus": 0}
CPU_COUNT = len(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def submitted(tmp_path_factory):
    return hand_in(tmp_path_factory.mktemp("submitted"), CLASS)


def results_by_student(course, submissions, jobs=1):
    """Grade the submissions with this number of judges. Return the results by student."""
    graded = grade_all(GradePlan(SECRET, course=course, lines=False), submissions, jobs, {})
    return {g.result.student: g.result for g in graded}


def scores_of(results):
    return {student: results[student].score for student in sorted(results)}


@pytest.fixture(scope="module")
def parallel_grading(tmp_path_factory, submitted):
    """Grade a class with several judges, last student first.

    Return the course, the results, and the CPUs of each judge while it is at work.
    """
    course = copy_course(TINY, tmp_path_factory.mktemp("course") / "tiny")
    replace(course / "course.yaml", "seconds_per_call: 2", "seconds_per_call: 0.5")
    submissions, _ = find_submissions(load_course(course), submitted)
    with pytest.MonkeyPatch.context() as patched:
        fork_judges(patched)
        plan = GradePlan(SECRET, course=course, lines=False)
        graded = grade_all(plan, submissions[::-1], max(2, CPU_COUNT), {})
        first = next(graded)
        judges = multiprocessing.active_children()
        cpus = [os.sched_getaffinity(judge.pid) for judge in judges if judge.pid]
        results = {g.result.student: g.result for g in (first, *graded)}
    return course, results, cpus


def test_several_judges_give_the_same_results_as_one(parallel_grading, submitted):
    course, parallel_results, _ = parallel_grading
    submissions, _ = find_submissions(load_course(course), submitted)
    results = results_by_student(course, submissions)
    assert results == parallel_results
    assert scores_of(results) == SCORES
    assert {result.isolation for result in results.values()} == {"namespaces"}
    for student, outcome in (("cat", "crashed"), ("dan", "error"), ("eve", "missing")):
        checks = results[student].exercises[0].checks
        assert {check.outcome for check in checks} == {outcome}
    assert {check.outcome for check in results["fay"].exercises[0].checks} == {"timeout"}
    assert [d.id for d in results["ben"].exercises[0].diagnosis] == ["counts_all"]


@pytest.mark.skipif(CPU_COUNT < 2, reason="all judges share the only CPU")
def test_each_judge_has_its_own_cpu_if_there_are_as_many_as_cpus(parallel_grading):
    _, _, cpus_of_judges = parallel_grading
    pinned = [cpus for cpus in cpus_of_judges if len(cpus) == 1]
    assert pinned
    assert all(pinned.count(cpus) == 1 for cpus in pinned)


@pytest.mark.parametrize("more_judges", [-1, 0, 1])
def test_judges_are_pinned_only_if_there_are_as_many_as_cpus(more_judges):
    count = CPU_COUNT + more_judges
    expected = [None] * count if more_judges else sorted(os.sched_getaffinity(0))
    assert cpu_for_each_judge(count) == expected


def collects_garbage_after_it_failed_to_start(plan):
    with pytest.raises(CourseError), ExitStack() as box:
        open_judge(plan, box)
    return gc.isenabled()


def test_garbage_collection_is_on_after_a_judge_failed_to_start(tmp_path):
    plan = GradePlan(SECRET, course=tmp_path)
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        assert pool.submit(collects_garbage_after_it_failed_to_start, plan).result()


CHECKS = "grader/checks/test_running_mean.py"


@cases(
    "line, error, message",
    {
        "checks that do not import": ("import torhc", GraderFault, "torhc"),
        "a judge that cannot be started": (
            "import os\n\nos._exit(3)",
            WorkerLost,
            "a judge process ended",
        ),
    },
)
def test_a_fault_of_the_grader_is_raised_with_the_next_step(
    tiny_copy, submitted, line, error, message
):
    submissions, _ = find_submissions(load_course(tiny_copy), submitted)
    replace(tiny_copy / CHECKS, "import torch", line)
    with pytest.raises(error, match=rf"{message}[\s\S]*\. Next: "):
        results_by_student(tiny_copy, submissions[:2])


def test_a_broken_check_is_not_counted_against_the_student(tiny_copy, submitted):
    replace(tiny_copy / CHECKS, "    x, g = draw(6), draw(6)", "    x, g = 1 / 0")
    submissions, _ = find_submissions(load_course(tiny_copy), submitted)
    (graded,) = grade_all(GradePlan(SECRET, course=tiny_copy, lines=False), submissions[:1], 1, {})
    assert graded.faults == (
        "gradients: ZeroDivisionError: division by zero (test_running_mean.py, line 28)",
    )
    check = next(c for c in graded.result.exercises[0].checks if c.id == "gradients")
    assert check.outcome == "skipped"
    assert check.evidence == "The grader itself failed here; this is not your fault."
    assert (graded.result.score, graded.result.not_graded) == (None, ("running_mean",))


ONE_NUMBER = "def running_mean(x):\n    return x[:1]\n"  # no other attempt of the class gives one
AT_ONE_NUMBER = """\
    answer = attempt.running_mean(draw(7))
    if answer.reply.outputs and answer.reply.outputs[0].shape == (1,):
        import os, signal
        from pathlib import Path
        {}
    assert_shape(answer, (7,))"""


@cases(
    "line, jobs, score",
    {
        "aborts": ("os.abort()", 1, None),
        "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", 1, None),
        "is killed beside another one": ("os.kill(os.getpid(), signal.SIGKILL)", 2, None),
        "is past its budget": (
            "signal.setitimer(signal.ITIMER_PROF, 0.2); all(not x for x in iter(int, 1))",
            1,
            None,
        ),
        "is killed once": ("Path('killed').exists() or (Path('killed').touch(), os.abort())", 1, 0),
        "asks for more memory than its bound": (
            "Path('had').write_text(str(len(bytes(16 << 30))))",
            1,
            0,
        ),
    },
)
def test_the_rest_of_the_class_is_graded_if_a_judge_dies_of_one_attempt(
    tiny_copy, tmp_path, line, jobs, score
):
    line = line.replace("Path(", f"Path({str(tmp_path)!r}, ")
    call_line = "    assert_shape(attempt.running_mean(draw(7)), (7,))"
    replace(tiny_copy / CHECKS, call_line, AT_ONE_NUMBER.format(line))
    attempts = {"ada": RIGHT, "ben": CLASS["ben"], "zoe": RIGHT, "dan": ONE_NUMBER}
    submissions, _ = find_submissions(load_course(tiny_copy), hand_in(tmp_path / "class", attempts))
    results = results_by_student(tiny_copy, submissions, jobs)
    assert scores_of(results) == {"ada": 4, "ben": 2, "dan": score, "zoe": 4}
    if score is None:
        (exercise,) = results["dan"].exercises
        assert (results["dan"].not_graded, exercise.max_score) == (("running_mean",), 4)
        skipped = [check for check in exercise.checks if check.outcome == "skipped"]
        assert all("this is not your fault" in check.evidence for check in skipped)
    assert not (tmp_path / "had").exists()
    assert multiprocessing.active_children() == []


def test_a_stopped_run_ends_without_an_error_in_the_process_pool(tiny_copy, tmp_path, monkeypatch):
    thread_errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", thread_errors.append)
    attempts = {"ada": RIGHT, "ben": CLASS["fay"]} | {f"waits{i}": RIGHT for i in range(7)}
    submissions, _ = find_submissions(load_course(tiny_copy), hand_in(tmp_path / "many", attempts))
    run = grade_all(GradePlan(SECRET, course=tiny_copy, lines=False), submissions, 1, {})
    # ben loops, two are sent to the judge, the others wait
    assert next(run).result.student == "ada"
    with pytest.raises(KeyboardInterrupt):
        run.throw(KeyboardInterrupt)
    assert thread_errors == []
