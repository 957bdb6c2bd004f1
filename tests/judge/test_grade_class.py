"""A class, graded by one judge or by several: the results are the same, and a fault of the grader's
own is seen.
"""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

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
from manyheads.result import Result
from manyheads.submission import Submission, find_submissions
from tests import make
from tests.make import BY_SUMS as RIGHT
from tests.make import TINY, copy_course, hand_in, replace
from tests.warm import fork_judges

pytestmark = pytest.mark.usefixtures("warm_judges")

SECRET = b"a secret of these tests' own: 0123456789"
CLASS = make.CLASS | {
    "eve": None,
    "fay": "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n",
    "gus": "def running_mean(x):\n    raise NotImplementedError()\n",
}
SCORES = {"ada": 4, "ben": 2, "cat": 0, "dan": 0, "eve": 0, "fay": 0, "gus": 0}


@pytest.fixture(scope="module")
def submissions_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hand_in(tmp_path_factory.mktemp("submitted"), CLASS)


def grade(course: Path, submissions: list[Submission], jobs: int) -> dict[str, Result]:
    return {
        g.result.student: g.result
        for g in grade_all(GradePlan(SECRET, course=course), submissions, jobs, {})
    }


@dataclass(frozen=True)
class Together:
    """A class, graded by several judges in the other order. cpus: of each judge, while they were at
    work.
    """

    course: Path
    results: dict[str, Result]
    cpus: list[set[int]]


@pytest.fixture(scope="module")
def parallel_grading(
    tmp_path_factory: pytest.TempPathFactory, submissions_folder: Path
) -> Together:
    course = copy_course(TINY, tmp_path_factory.mktemp("course") / "tiny")
    replace(course / "course.yaml", "seconds_per_call: 2", "seconds_per_call: 0.5")
    submissions, _ = find_submissions(load_course(course), submissions_folder)
    with pytest.MonkeyPatch.context() as patched:
        fork_judges(patched)
        graded = grade_all(
            GradePlan(SECRET, course=course),
            submissions[::-1],
            max(2, len(os.sched_getaffinity(0))),
            {},
        )
        first_result = next(graded)
        cpus = [
            os.sched_getaffinity(judge.pid)
            for judge in multiprocessing.active_children()
            if judge.pid
        ]
        return Together(course, {g.result.student: g.result for g in (first_result, *graded)}, cpus)


def test_several_judges_give_what_one_gives_whatever_the_order(
    parallel_grading: Together, submissions_folder: Path
) -> None:
    submissions, _ = find_submissions(load_course(parallel_grading.course), submissions_folder)
    results = grade(parallel_grading.course, submissions, 1)
    assert results == parallel_grading.results
    assert {student: results[student].score for student in sorted(results)} == SCORES
    assert {r.isolation for r in results.values()} == {"namespaces"}
    outcomes = {}
    for student, result in results.items():
        outcomes[student] = {check.outcome for check in result.exercises[0].checks}
    assert (outcomes["cat"], outcomes["dan"], outcomes["eve"]) == (
        {"crashed"},
        {"error"},
        {"missing"},
    )
    assert outcomes["fay"] == {"timeout"}
    assert [d.id for d in results["ben"].exercises[0].diagnosis] == ["counts_all"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU is everybody's")
def test_as_many_judges_as_cpus_keep_to_one_each(parallel_grading: Together) -> None:
    pinned = [cpus for cpus in parallel_grading.cpus if len(cpus) == 1]
    assert pinned
    assert all(pinned.count(cpus) == 1 for cpus in pinned)


def collects_after_it_has_failed_to_start(plan: GradePlan) -> bool:
    with pytest.raises(CourseError), ExitStack() as box:
        open_judge(plan, box)
    return gc.isenabled()


def test_a_judge_collects_garbage_though_not_while_it_starts(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        assert pool.submit(
            collects_after_it_has_failed_to_start, GradePlan(SECRET, course=tmp_path)
        ).result()


CHECKS = "grader/checks/test_running_mean.py"


@pytest.mark.parametrize(
    ("instead", "error", "says"),
    [
        pytest.param("import torhc", GraderFault, "torhc", id="checks that do not import"),
        pytest.param(
            "import os\n\nos._exit(3)",
            WorkerLost,
            "a judge process ended",
            id="a judge that cannot be started",
        ),
    ],
)
def test_a_judges_fault_surfaces_with_what_to_do_next(
    tiny_copy, submissions_folder, instead, error, says
):
    submissions, _ = find_submissions(load_course(tiny_copy), submissions_folder)
    replace(tiny_copy / CHECKS, "import torch", instead)
    with pytest.raises(error, match=says) as raised:
        grade(tiny_copy, submissions[:2], 1)
    assert ". Next: " in str(raised.value)


def test_a_check_that_fails_by_itself_is_told_apart_from_the_students_fault(
    tiny_copy: Path, submissions_folder: Path
) -> None:
    replace(tiny_copy / CHECKS, "    x, g = draw(6), draw(6)", "    x, g = 1 / 0")
    submissions, _ = find_submissions(load_course(tiny_copy), submissions_folder)
    (graded,) = grade_all(GradePlan(SECRET, course=tiny_copy), submissions[:1], 1, {})
    assert graded.faults == (
        "gradients: ZeroDivisionError: division by zero (test_running_mean.py, line 28)",
    )
    check = next(c for c in graded.result.exercises[0].checks if c.id == "gradients")
    assert check.outcome == "skipped"
    assert check.evidence == "The grader itself failed here; this is not your fault."
    assert (graded.result.score, graded.result.not_graded) == (None, ("running_mean",))


ONE_NUMBER = "def running_mean(x):\n    return x[:1]\n"  # as no other attempt of the class
AT_ONE_NUMBER = """
    answer = attempt.running_mean(draw(7))
    if answer.reply.outputs and answer.reply.outputs[0].shape == (1,):
        import os, pathlib, signal
        {}
    assert_shape(answer, (7,))"""
OTHERS = {"ada": RIGHT, "ben": CLASS["ben"], "zoe": RIGHT}


def kill_judge(folder: Path, how: str) -> None:
    """Let the first check do this to its judge, at the attempt that gives one number."""
    asks = "    assert_shape(attempt.running_mean(draw(7)), (7,))"
    replace(folder / CHECKS, asks, AT_ONE_NUMBER.format(how).lstrip("\n"))


def graded_where_a_judge_dies(
    course: Path, folder: Path, how: str, jobs: int = 1
) -> dict[str, Result]:
    """The class, and dan, whose attempt it is."""
    kill_judge(course, how)
    submissions, _ = find_submissions(
        load_course(course), hand_in(folder / "class", OTHERS | {"dan": ONE_NUMBER})
    )
    return grade(course, submissions, jobs)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("os.abort()", id="aborts"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", id="is killed, as for lack of memory"),
        pytest.param(
            "signal.setitimer(signal.ITIMER_PROF, 0.2); all(not x for x in iter(int, 1))",
            id="is past its budget",
        ),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_who_is_judged_when_a_judge(tiny_copy: Path, tmp_path: Path, how: str, jobs: int) -> None:
    """is not graded, where that happens again; the rest of the class is."""
    results = graded_where_a_judge_dies(tiny_copy, tmp_path, how, jobs)
    assert {student: results[student].score for student in results} == {
        "ada": 4,
        "ben": 2,
        "zoe": 4,
        "dan": None,
    }
    (exercise,) = results["dan"].exercises
    assert (results["dan"].not_graded, exercise.max_score) == (("running_mean",), 4)
    assert all(
        "this is not your fault" in c.evidence for c in exercise.checks if c.outcome == "skipped"
    )
    assert multiprocessing.active_children() == []


def test_a_judge_gets_no_more_memory_than_its_bound(tiny_copy: Path, tmp_path: Path) -> None:
    asks_for_more = f"pathlib.Path({str(tmp_path / 'had')!r}).write_text(str(len(bytes(16 << 30))))"
    results = graded_where_a_judge_dies(tiny_copy, tmp_path, asks_for_more)
    assert {student: results[student].score for student in results} == {
        "ada": 4,
        "ben": 2,
        "zoe": 4,
        "dan": 0,
    }
    assert not (tmp_path / "had").exists()


def test_a_judge_that_is_killed_once_costs_nobody_anything(tiny_copy: Path, tmp_path: Path) -> None:
    dies = "m.exists() or (m.touch(), os.kill(os.getpid(), signal.SIGKILL))"
    results = graded_where_a_judge_dies(
        tiny_copy, tmp_path, f"m = pathlib.Path({str(tmp_path / 'died')!r}); {dies}"
    )
    assert {student: results[student].score for student in results} == {
        "ada": 4,
        "ben": 2,
        "zoe": 4,
        "dan": 0,
    }


@pytest.fixture
def two_gib() -> Iterator[Path]:
    """A control group with 2 GiB."""
    v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup" if v2 else "/sys/fs/cgroup/memory", f"test-{os.getpid()}")
    try:
        group.mkdir()
        (group / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text(str(2 << 30))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        pytest.skip("no control group can be made here")
    yield group
    for _ in range(100):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def test_a_judge_that_the_kernel_ends_for_lack_of_memory_ends_no_run(tiny_copy, tmp_path, two_gib):
    kill_judge(tiny_copy, "[b'x' * (1 << 28) for _ in range(12)]")
    submitted = hand_in(tmp_path / "class", OTHERS | {"dan": ONE_NUMBER})
    grading = f"{sys.executable} -m manyheads grade {submitted} --jobs 1 --no-lines"
    line = f"echo $$ > {two_gib}/cgroup.procs && exec {grading}"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    completed = subprocess.run(
        ["sh", "-c", line], cwd=tiny_copy, env=env, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 1, completed.stderr
    assert "not graded: dan: " in completed.stdout
    results = (
        Result.model_validate_json(path.read_bytes()) for path in tiny_copy.glob("results/*/*.json")
    )
    assert {result.student: result.score for result in results} == {
        "ada": 4,
        "ben": 2,
        "zoe": 4,
        "dan": None,
    }


def test_a_run_that_is_stopped_ends_without_a_word_from_the_pools_thread(
    tiny_copy, tmp_path, monkeypatch
):
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    folder = hand_in(
        tmp_path / "many",
        {"ada": RIGHT, "ben": CLASS["fay"]} | {f"waits{i}": RIGHT for i in range(7)},
    )
    submissions, _ = find_submissions(load_course(tiny_copy), folder)
    run = grade_all(GradePlan(SECRET, course=tiny_copy), submissions, 1, {})
    # ben loops, two are at the judge's door, the others wait
    assert next(run).result.student == "ada"
    with pytest.raises(KeyboardInterrupt):
        run.throw(KeyboardInterrupt)
    assert complaints == []


@pytest.mark.parametrize("others", [-1, 0, 1])
def test_each_judge_has_a_cpu_of_its_own_where_there_are_as_many_and_else_none(others: int) -> None:
    ours = sorted(os.sched_getaffinity(0))
    assert cpu_for_each_judge(len(ours) + others) == (
        [None] * (len(ours) + others) if others else ours
    )
