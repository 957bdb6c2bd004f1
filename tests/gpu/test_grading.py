"""A class graded on a real GPU, and on the CPU beside it. Skipped, with the reason, where there is
none.

A module of its own: `course grade` needs the GPU that a box of test_box.py has.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.result import Result
from tests.conftest import Run

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture
def on_both(
    run_course: Run, real_course: Course, tmp_path: Path
) -> Callable[[Path], tuple[Result, Result]]:
    """One student's folder, graded on the GPU and on the CPU."""

    def grade_on_devices(submitted: Path) -> tuple[Result, Result]:
        results = []
        for device in ("cuda", "cpu"):
            out = tmp_path / device
            completed = run_course(
                "grade", submitted, "--out", out, "--device", device, "--course", real_course.root
            )
            assert completed.returncode == 0, completed.stderr
            (path,) = out.glob("*/*.json")
            results.append(Result.model_validate(json.loads(path.read_text())))
        return results[0], results[1]

    return grade_on_devices


def handed_in(tmp_path: Path, course: Course, source: Callable[[str], Path]) -> Path:
    """A class of one: for each exercise the file that `source` names for its id."""
    assignment = course.assignments[0]
    folder = tmp_path / "submitted" / "ada" / assignment.id
    folder.mkdir(parents=True)
    for exercise in assignment.exercises:
        (folder / f"{exercise.stem}.py").write_text(source(exercise.id).read_text())
    return tmp_path / "submitted"


def test_the_solutions_have_full_marks_on_both_and_pass_what_a_gpu_adds(
    on_both, real_course, tmp_path
):
    assignment = real_course.assignments[0]
    solutions = {exercise.id: exercise.solution for exercise in assignment.exercises}
    on_gpu, on_cpu = on_both(handed_in(tmp_path, real_course, solutions.__getitem__))
    assert (on_gpu.device, on_gpu.isolation) == ("cuda", "namespaces")
    failed = [
        (e.id, c.id, c.evidence)
        for e in on_gpu.exercises
        for c in e.checks
        if c.outcome != "passed"
    ]
    assert failed == []
    assert on_gpu.score == on_cpu.score == on_gpu.max_score
    assert sum(len(e.checks) for e in on_gpu.exercises) > sum(
        len(e.checks) for e in on_cpu.exercises
    )


def test_a_wrong_attempt_fails_on_a_gpu_what_it_fails_on_a_cpu(on_both, real_course, tmp_path):
    wrong_folder = real_course.root / "grader" / "wrong"
    on_gpu, on_cpu = on_both(
        handed_in(
            tmp_path, real_course, lambda exercise: min((wrong_folder / exercise).glob("*.py"))
        )
    )
    for gpu_exercise, here in zip(on_gpu.exercises, on_cpu.exercises, strict=True):
        failed_here = {c.id for c in here.checks if c.outcome != "passed"}
        assert failed_here
        assert failed_here <= {c.id for c in gpu_exercise.checks if c.outcome != "passed"}, (
            gpu_exercise.id
        )
