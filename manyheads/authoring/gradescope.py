"""Make the zip that Gradescope runs as an autograder: the engine, and what grading needs of the course.

It holds the answers and the course's secret, and nothing of the class: no results, no decisions, no names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from ..course import Assignment, Course, CourseError
from ..course.secret import FOLDER, course_secret
from ..whole import write_whole
from .templates import as_they_are, filled
from .wheel import engine_wheel, zipped

TOOLS = "tools/"
PROGRAMS = ("setup.sh", "run_autograder")


def autograder_of(course: Course, assignment: Assignment, torch_index: str = "") -> dict[str, bytes]:
    """Every file of the zip, by its path. torch_index: where to take torch from. Raises CourseError."""
    words = {"assignment": shlex.quote(assignment.id), "torch_index": torch_index}
    shared = {name: text for name, text in as_they_are("shared") if name.startswith(TOOLS) or name == "constraints.txt"}
    of_course = {f"course/{path.relative_to(course.root).as_posix()}": path.read_bytes() for path in _needed(course)}
    secret = {f"course/{FOLDER}/secret": course_secret(course.root)}
    return {**dict(filled("gradescope", words)), **shared, **engine_wheel(), **of_course, **secret}


def write_autograder(files: dict[str, bytes], out: Path) -> None:
    """Write the zip, for its owner alone. Raises CourseError."""
    try:
        write_whole(out, zipped(files, PROGRAMS))
        out.chmod(0o600)
    except OSError as error:
        raise CourseError(f"{out} cannot be written ({error.strerror}). Next: name another file") from None


def _needed(course: Course) -> Iterator[Path]:
    """What grading reads: no fingerprints, no notebooks, no attempts that only `course verify` asks."""
    yield course.root / "course.yaml"
    yield course.texts
    for exercise in course.exercises:
        needed = [
            exercise.solution,
            exercise.script,
            *exercise.check_sources(),
            *exercise.mutant_sources(),
        ]
        yield from (path for path in needed if path.exists())
    for folder in ("checks", "misconceptions"):
        yield from (course.root / "grader" / folder).glob("__init__.py")
