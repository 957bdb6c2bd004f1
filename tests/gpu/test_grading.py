"""A class graded on a real GPU and on the CPU. Without a GPU these tests are skipped.

They are not in test_box.py, because `course grade` needs the GPU that its box has locked.
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
def grade_on_both(
    run_course: Run, real_course: Course, tmp_path: Path
) -> Callable[[Path], tuple[Result, Result]]:
    """Return a function that grades one student's folder on the GPU and on the CPU."""

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


def write_class(tmp_path: Path, course: Course, source: Callable[[str], Path]) -> Path:
    """Write a class of one student, and return its folder.

    Args:
        source: returns the path of the file to hand in for the id of an exercise.
    """
    assignment = course.assignments[0]
    folder = tmp_path / "submitted" / "ada" / assignment.id
    folder.mkdir(parents=True)
    for exercise in assignment.exercises:
        (folder / f"{exercise.stem}.py").write_text(source(exercise.id).read_text())
    return tmp_path / "submitted"


def test_solutions_have_full_marks_and_pass_the_extra_gpu_checks(
    grade_on_both, real_course, tmp_path
):
    assignment = real_course.assignments[0]
    solutions = {exercise.id: exercise.solution for exercise in assignment.exercises}
    on_gpu, on_cpu = grade_on_both(write_class(tmp_path, real_course, solutions.__getitem__))
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


def test_a_wrong_attempt_fails_the_same_checks_on_a_gpu(grade_on_both, real_course, tmp_path):
    wrong_folder = real_course.root / "grader" / "wrong"
    on_gpu, on_cpu = grade_on_both(
        write_class(
            tmp_path, real_course, lambda exercise: min((wrong_folder / exercise).glob("*.py"))
        )
    )
    for gpu_exercise, cpu_exercise in zip(on_gpu.exercises, on_cpu.exercises, strict=True):
        failed_on_cpu = {c.id for c in cpu_exercise.checks if c.outcome != "passed"}
        assert failed_on_cpu
        assert failed_on_cpu <= {c.id for c in gpu_exercise.checks if c.outcome != "passed"}, (
            gpu_exercise.id
        )
