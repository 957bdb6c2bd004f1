"""Read course.yaml. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from ..errors import CourseFault
from .dates import moment
from .file import CourseFile
from .model import Course
from .yaml_file import Unread, first_problem, line_of, read_yaml

NAME = "course.yaml"
_NEXT = "Next: mend that line, then course verify"


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
        data, node = read_yaml(path)
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). Next: pass --course FOLDER") from None
    except Unread as error:
        raise CourseError(str(error)) from None
    try:
        file = CourseFile.model_validate(data)
    except ValidationError as error:
        raise CourseError(f"{first_problem(path, node, error, CourseFile)}. {_NEXT}") from None
    _demand_zones(path, node, file)
    return Course(root=root.resolve(), file=file)


def _demand_zones(path: Path, node: yaml.Node | None, file: CourseFile) -> None:
    """Raise CourseError for a date that is no moment, because neither it nor the course names a zone."""
    for i, assignment in enumerate(file.assignments):
        if assignment.due is not None and file.time_zone is None:
            try:
                moment(assignment.due)
            except ValueError as error:
                line = line_of(node, ("assignments", i, "due"))
                raise CourseError(f"{path}:{line}: due: {error}. {_NEXT}") from None
