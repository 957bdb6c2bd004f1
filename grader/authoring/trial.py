"""A class repository, tried before anybody gets it: stubs score nothing, visible checks run, the engine stands alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..course import Assignment, Course, CourseError, Exercise
from ..judge.catalogue import Catalogue
from ..judge.local import LocalSubject
from ..judge.references import namespace_of
from ..public.check import check_attempt
from ..public.file import read

TRIAL = b"a release's trial"  # in place of the course secret
SECONDS = 300


def try_out(course: Course, catalogue: Catalogue, files: Mapping[str, bytes]) -> None:
    """Raises CourseError where the repository would not do what it promises."""
    with tempfile.TemporaryDirectory(prefix="course-release-") as made:
        folder = Path(made).resolve()
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        released = Course(root=folder, file=course.file)
        for assignment in course.assignments:
            for exercise in assignment.exercises:
                _try_exercise(course, released, catalogue, assignment, exercise)
        _try_engine(folder)


def _try_exercise(
    course: Course, released: Course, catalogue: Catalogue, assignment: Assignment, exercise: Exercise
) -> None:
    stub = LocalSubject(namespace_of(released.released(assignment, exercise)))
    reference = catalogue.reference(assignment, exercise)
    score = sum(o.score for o in catalogue.run(exercise, stub, reference, TRIAL, exercise.id))
    _demand(score == 0, exercise, f"its stub scores {score:g}")
    fingerprints = read(released.fingerprints(assignment, exercise))
    passed = [c.id for c in check_attempt(fingerprints, stub).checks if c.outcome == "passed"]
    _demand(not passed, exercise, f"its stub passes the visible checks {', '.join(passed)}")
    right = LocalSubject(namespace_of(course.solution(assignment, exercise)))
    failed = [c.id for c in check_attempt(fingerprints, right).checks if c.outcome != "passed"]
    _demand(not failed, exercise, f"its solution fails the visible checks {', '.join(failed)}")


def _try_engine(folder: Path) -> None:
    """The engine that students get, in a process that sees nothing of this one."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "grader", "status"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise CourseError(f"the released engine does not run: {said[-1]}")


def _demand(holds: bool, exercise: Exercise, problem: str) -> None:
    if not holds:
        raise CourseError(f"{exercise.id} is not fit for release: {problem}. Next: course verify {exercise.id}")
