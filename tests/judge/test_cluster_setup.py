"""What a cluster must have before any work is sent to it. Whole runs on one are in test_cluster.py."""

import importlib
import shutil
import socket
import sys
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.errors import CourseFault
from manyheads.judge.cluster import JudgeKeeper, RunSetup
from manyheads.judge.judge_process import GradePlan
from manyheads.judge.keys import files_key, keys_of
from manyheads.submission import find_submissions
from tests.conftest import Run
from tests.judge.test_cluster import CHECKS
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, hand_in


@pytest.mark.journey  # it waits a quarter of a minute for an answer
def test_an_address_where_nobody_listens_is_one_sentence(run_course: Run, tiny_copy: Path, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path / "submitted", CLASS)
    with socket.socket() as taken:  # and never listening
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        done = run_course("grade", submitted, "--out", tmp_path / "out", "--course", tiny_copy, "--cluster", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"course: no dask scheduler answers at {address}")
    assert len(done.stderr.splitlines()) == 1
    assert ". Next: dask scheduler" in done.stderr


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "manyheads.judge.cluster")
    with pytest.raises(CourseFault, match=r"needs dask\.distributed\. Next: pip install 'manyheads\[cluster\]'$"):
        importlib.import_module("manyheads.judge.cluster")


def test_a_worker_that_sees_another_course_takes_no_work(tiny_copy: Path) -> None:
    course, plan = load_course(tiny_copy), GradePlan(b"secret", course=tiny_copy)
    setup = RunSetup(plan, keys_of(course, plan).of_course(), course.limits.source_kib)
    with (tiny_copy / CHECKS).open("a") as file:
        file.write("\n# changed\n")
    says = r"the course, the grader or the package versions differ .* Next: install the same engine"
    with pytest.raises(CourseFault, match=says):
        JudgeKeeper().prepare(setup)
    shutil.rmtree(tiny_copy)
    with pytest.raises(CourseFault, match=r"there is no course in .*\. Next: share that folder"):
        JudgeKeeper().prepare(setup)


def test_a_worker_that_sees_other_files_grades_nothing(tiny_copy: Path, tmp_path: Path) -> None:
    course, plan = load_course(tiny_copy), GradePlan(b"secret", course=tiny_copy)
    setup = RunSetup(plan, keys_of(course, plan).of_course(), course.limits.source_kib)
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT})
    (submission,) = find_submissions(course, submitted)[0]
    key = files_key(submission, setup.limit_kib)
    shutil.rmtree(submission.folder)
    with pytest.raises(CourseFault, match=r"the files in .*ada/averages .*\. Next: share that folder"):
        JudgeKeeper().grade(setup, submission, key)
