"""Try a class repository before it is released: stubs score 0, visible checks run, and the engine is complete."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from ..checks.local import LocalRecordingRunner, namespace_of
from ..course import Course, CourseError, Exercise
from ..diagnosis.recording_file import read
from ..judge.run_checks import Catalogue
from ..student.check_attempt import check_attempt
from ..whole import write_whole

TRIAL = b"a release's trial"  # used in place of the course secret
SECONDS = 600.0  # for one attempt, and for all attempts together


def try_out(
    course: Course, catalogue: Catalogue, files: Mapping[str, bytes], jobs: int = 1, *, is_handed_over: bool = False
) -> None:
    """Raise CourseError if a stub scores points, or a solution fails `course check`, in the class repository.

    jobs: how many processes run `course check`. is_handed_over: whether just these files were tried and handed over before, with an
    engine and recordings that are the same to the byte: then only the stubs are tried again, for hidden checks may have changed.
    """
    with tempfile.TemporaryDirectory(prefix="course-release-") as made:
        folder, engine = Path(made).resolve() / "class", Path(made).resolve() / "engine"
        for name, content in files.items():
            write_whole(folder / name, content)
        pairs = list(zip(course.exercises, Course(folder, course.file).exercises, strict=True))
        for exercise, released in pairs:
            _try_stub(exercise, released, catalogue)
        if is_handed_over:
            return
        for exercise, released in pairs:
            shutil.copy(exercise.solution, released.script)
        patient = {"seconds_per_call": SECONDS / 5, "seconds_per_attempt": SECONDS}  # a busy machine fails no release
        file = course.file.model_copy(update={"limits": course.limits.model_copy(update=patient)})
        (folder / "course.yaml").write_text(yaml.safe_dump(file.model_dump(mode="json")), encoding="utf-8")
        with zipfile.ZipFile(io.BytesIO(next(each for name, each in files.items() if name.endswith(".whl")))) as wheel:
            wheel.extractall(engine)
        shares = [[exercise.id for exercise in course.exercises[job::jobs]] for job in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:  # each thread waits for a process
            list(pool.map(lambda ids: _try_engine(folder, engine, ids), filter(None, shares)))


def standalone_command(folder: Path, *arguments: str) -> list[str]:
    """Return the command `course` of the engine in this folder, without the engine that is installed here.

    Without the module `site`, an editable installation cannot provide modules that the folder lacks.
    """
    sites = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    code = (
        f"import runpy, sys; sys.path[:0] = [{str(folder)!r}]; sys.path += {sites!r}; "
        "runpy.run_module('manyheads', run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-S", "-c", code, *arguments]


def _try_stub(exercise: Exercise, released: Exercise, catalogue: Catalogue) -> None:
    """`released`: the same exercise in the class repository, which has its stub."""
    stub = LocalRecordingRunner(namespace_of(released.script))
    reference = catalogue.reference(exercise)
    score = sum(o.score for o in catalogue.run(exercise, stub, reference, TRIAL, exercise.id))
    result = check_attempt(read(released.fingerprints), stub)
    passed = [check.id for check in result.checks if check.outcome == "passed"]
    if score or passed:
        problem = f"its stub scores {score:g}" if score else f"its stub passes the visible checks {', '.join(passed)}"
        raise CourseError(f"{exercise.id} cannot be released: {problem}. Next: course verify {exercise.id}")


def _try_engine(folder: Path, engine: Path, ids: Sequence[str]) -> None:
    """Run `course check` in the class repository, where solutions replace the stubs. All checks must pass."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        standalone_command(engine, "check", *ids),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("✗", "course:"))]
        said = said or done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise CourseError(f"not every solution passes `course check` as it is released: {said[0]}. Next: course verify")
