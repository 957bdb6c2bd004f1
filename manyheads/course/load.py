"""Read course.yaml, and other YAML files that people write.

Every error names the file and the line, in words for who wrote it.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.reader import ReaderError

from ..errors import CourseFault
from .dates import moment
from .file import CourseFile
from .model import Course

NAME = "course.yaml"
THEN = "course verify"
Place = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)

# What YAML's reader says, and what it comes from.
_MEANT = {
    "cannot start any token": "a tab, or a sign that YAML keeps for itself, begins the line: write blanks, or put the text in quotes",
    "expected <block end>": "its indentation does not fit the lines above: rows of one list begin in the same column",
    "mapping values are not allowed": "a colon where none can be: put the text in quotes, or begin it in the column of the keys above",
    "could not find expected ':'": "a colon is missing, in this line or the one above",
}
# What a model says of a value of the wrong kind, and what to write.
_SAID = {
    "missing": "is missing, and has to be there",
    "model_type": "should be keys with their values, each `key: value`",
    "dict_type": "should be keys with their values, each `key: value`",
    "tuple_type": "should be a list, each row beginning with `- `",
    "string_type": "YAML reads this as {given}, not as text, which may need quotes",
}


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
        if assignment.due is not None:
            try:
                moment(assignment.due, file.time_zone or "")  # which has to name a zone where the course names none
            except ValueError as error:
                line = line_of(node, ("assignments", i, "due"))
                raise CourseError(f"{path}:{line}: due: {error}. Next: mend that line, then {THEN}") from None
    return Course(root=root.resolve(), file=file)


class _Loader(yaml.SafeLoader):
    """YAML's reader. It leaves dates as they are written, refuses a key that stands twice, and says each line."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in lines:
                said = f"{key.value}: stands in line {lines[key.value]}, too. Keep one of them"
                raise yaml.MarkedYAMLError(problem=said, problem_mark=key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            said = f"this is no {node.tag.rpartition(':')[2]}: put it in quotes"
            raise yaml.MarkedYAMLError(problem=said, problem_mark=node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)


def read_model(path: Path, model: type[Model], then: str) -> tuple[Model, yaml.Node | None]:
    """Return what the file says, and its nodes, of which `line_of` tells the lines. Raises CourseFault, and OSError.

    then: the command to run once the file is mended.
    """
    data, loader = path.read_bytes(), None
    try:
        loader = _Loader(data.decode("utf-8"))
        node = loader.get_single_node()
        return model.model_validate(None if node is None else loader.construct_document(node)), node  # parsed once
    except UnicodeDecodeError as error:
        line, said = data.count(b"\n", 0, error.start) + 1, f"is not UTF-8 (byte {error.start}): save it as UTF-8"
    except ReaderError as error:
        line, said = data.decode().count("\n", 0, error.position) + 1, "a character that YAML does not know"
    except yaml.MarkedYAMLError as error:
        line, said = _problem(error)
    except ValidationError as error:
        found = error.errors()  # first a key that nobody knows, for it may be the one that another sentence misses
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
        line, said = line_of(node, first["loc"]), _plainly(first, model.model_json_schema())
    except (ValueError, RecursionError):  # a character by a number that none has, or thousands of brackets
        line, said = loader.line + 1 if loader else 1, "cannot be read as YAML"
    raise CourseFault(f"{path}:{line}: {said}. Next: mend that line, then {then}") from None


def line_of(node: yaml.Node | None, place: Place) -> int:
    """Return the line (from 1) of the deepest part of the place that the file contains."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _plainly(error: ErrorDetails, schema: dict[str, Any]) -> str:
    """Return which key is wrong, as what, and what to write. The line says in which row it is."""
    place, given, kind = error["loc"], error["input"], error["type"]
    last = max((i for i, each in enumerate(place) if isinstance(each, int)), default=-1)
    key = ".".join(str(each) for each in place[last + 1 :] if "[" not in str(each))  # a validator has brackets
    named = f"{key}: " if key else "" if place else "the file: "
    if kind == "extra_forbidden":
        known = sorted(_part(schema, place[:-1]).get("properties", {}))
        near = get_close_matches(str(place[-1]), known, 1)
        meant = f". Is it {near[0]}?" if near else ", or it is of another version of the engine."
        return f"{named}is no key that is known here{meant} There are: {', '.join(known) or 'none'}"
    if kind == "value_error":
        return named + error["msg"].removeprefix("Value error, ")
    shown = ascii(given)[:50] if given is None or isinstance(given, str | int | float) else ""
    said = _SAID[kind].format(given=shown or "several values") if kind in _SAID else error["msg"]
    said = said.partition(", unable")[0] + (f", not {shown}" if shown and kind not in _SAID else "")
    about = _part(schema, place).get("description", "").rstrip(".")
    return named + said + (f": {about}" if about else "")


def _part(schema: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the part of a JSON Schema that stands for this place; {} where the place is in none."""

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        """With what it refers to in its place, and of several kinds the first."""
        own = {key: part[key] for key in ("description",) if key in part}
        if "anyOf" in part:
            return {**resolved(part["anyOf"][0]), **own}
        if "$ref" in part:
            return {**resolved(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]]), **own}
        return part

    part = resolved(schema)
    for step in place:
        part = resolved(part.get("items", {}) if isinstance(step, int) else part.get("properties", {}).get(step, {}))
    return part


def _problem(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """Return the line, and what is wrong; for a bracket or quote that is never closed, the line that opens it."""
    said, mark = error.problem or "", error.problem_mark or error.context_mark
    if error.context_mark is not None and "end of stream" in said:
        what = "quote" if "quoted" in (error.context or "") else "bracket"
        return error.context_mark.line + 1, f"a {what} that begins here is never closed"
    return mark.line + 1 if mark else 1, next((meant for key, meant in _MEANT.items() if key in said), said)
