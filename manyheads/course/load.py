"""Read course.yaml. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from ..errors import CourseFault
from .file import CourseFile
from .model import Course

NAME = "course.yaml"


class CourseError(CourseFault):
    """course.yaml, or a file that it needs, is missing or wrong. The text ends with what to do next."""


def find_course(start: Path) -> Path:
    """The nearest folder that holds a course.yaml: `start` or one above it. Raises CourseError."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    raise CourseError(f"no {NAME} in {start} or above it. Next: change to the course's folder, or pass --course FOLDER")


def load_course(root: Path) -> Course:
    """Load the course in this folder. Raises CourseError."""
    path = root / NAME
    try:
        text = path.read_text(encoding="utf-8")
        data, node = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). Next: pass --course FOLDER") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8 (byte {error.start}). Next: save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise CourseError(f"{path}{_problem(error)}. Next: mend that line") from None
    try:
        return Course(root=root.resolve(), file=CourseFile.model_validate(data))
    except ValidationError as error:
        first = error.errors()[0]
        line = _line(node, first["loc"])
        name = ".".join(str(part) for part in first["loc"]) or "the file"
        message = first["msg"].removeprefix("Value error, ")
        raise CourseError(f"{path}:{line}: {name}: {message}. Next: mend that line, then course verify") from None


def _line(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """The line (from 1) of the deepest part of `location` that the file contains."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _problem(error: yaml.YAMLError) -> str:
    """ ":line: what is wrong". For a bracket or quote that is never closed: the line that opens it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ": not YAML"
    if error.context_mark is not None and "end of stream" in (error.problem or ""):
        return f":{error.context_mark.line + 1}: {error.context}, {error.problem}"
    return f":{error.problem_mark.line + 1}: {error.problem}"
