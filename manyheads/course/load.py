"""Read course.yaml. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path

from ..errors import CourseFault
from .dates import moment
from .file import CourseFile
from .model import Course
from .yaml_file import line_of, read_model

NAME = "course.yaml"
THEN = "course verify"


class CourseError(CourseFault):
    """course.yaml, or a file that it needs, is missing or wrong. The text ends with what to do next."""


def find_course(start: Path) -> Path:
    """Return the nearest folder that holds a course.yaml: `start` or one above it. Raises CourseError."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    raise CourseError(f"no {NAME} in {start} or above it. Next: change to the course's folder, or pass --course FOLDER")


def load_course(root: Path) -> Course:
    """Load the course in this folder. Raises CourseError."""
    path = root / NAME
    try:
        file, node = read_model(path, CourseFile, THEN)
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). Next: pass --course FOLDER") from None
    except CourseFault as error:
        raise CourseError(str(error)) from None
    for i, assignment in enumerate(file.assignments):
        if assignment.due is not None and file.time_zone is None:
            try:
                moment(assignment.due)  # which has to name a zone where the course names none
            except ValueError as error:
                line = line_of(node, ("assignments", i, "due"))
                raise CourseError(f"{path}:{line}: due: {error}. Next: mend that line, then {THEN}") from None
    return Course(root=root.resolve(), file=file)
