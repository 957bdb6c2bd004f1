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

# What a model refuses, and what to write.
_SAID = {
    "missing": "is missing, and has to be there",
    **dict.fromkeys(("float", "int", "int_from_float"), "{given!a} is no number{about}"),
    "greater_than": "{given!a} is too small: it should be greater than {gt:g}",
    "greater_than_equal": "{given!a} is too small: it should be at least {ge:g}",
    "string": "should be text{about}",
    "string_too_short": "is empty{about}",
    "string_pattern_mismatch": "{given!a} does not fit{about}",
    "too_short": "is an empty list, and should have at least one row",
    "literal_error": "{given!a} is not {expected}",
    "bool": "{given!a} is neither true nor false",
    **dict.fromkeys(("model", "dict"), "should be keys with their values, each `key: value`{about}"),
    **dict.fromkeys(("tuple", "list"), "should be a list, each row beginning with `- `{about}"),
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
        if assignment.due is not None and file.time_zone is None:
            try:
                moment(assignment.due)  # which has to name a zone where the course names none
            except ValueError as error:
                line = line_of(node, ("assignments", i, "due"))
                raise CourseError(f"{path}:{line}: due: {error}. Next: mend that line, then {THEN}") from None
    return Course(root=root.resolve(), file=file)


def read_model(path: Path, model: type[Model], then: str) -> tuple[Model, yaml.Node | None]:
    """Return what the file says, and its nodes, of which `line_of` tells the lines. Raises CourseFault, and OSError.

    then: the command to run once the file is mended.
    """
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        _refuse_twice(node)
        return model.model_validate(None if node is None else loader.construct_document(node)), node  # parsed once
    except UnicodeDecodeError as error:
        said = f" is not UTF-8 (byte {error.start}). Next: save it as UTF-8"
    except yaml.YAMLError as error:
        said = f"{_problem(error)}. Next: mend that line"
    except ValidationError as error:
        found = error.errors()  # first a key that nobody knows, for it may be the one that another sentence misses
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
        named = f"{name}: " if (name := _name(first["loc"])) else ""
        said = (
            f":{line_of(node, first['loc'])}: {named}{_plainly(first, model.model_json_schema())}. Next: mend that line"
        )
    except (ValueError, RecursionError):  # a date such as 2026-13-45, which YAML takes for one
        said = ": not YAML that can be read. Next: mend its dates and brackets"
    raise CourseFault(f"{path}{said}, then {then}") from None


def line_of(node: yaml.Node | None, place: Place) -> int:
    """Return the line (from 1) of the deepest part of the place that the file contains."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _name(place: Place) -> str:
    """Return the key, with those around it in its row; the line says which row it is."""
    named = [each if isinstance(each, int) or "[" not in each else None for each in place]  # a validator has brackets
    last = max((i for i, each in enumerate(named) if isinstance(each, int)), default=-1)
    own = [part for part in named[last + 1 :] if isinstance(part, str)]
    return ".".join(own) or ("the file" if set(named) <= {None} else "")


def _plainly(first: ErrorDetails, schema: dict[str, Any]) -> str:
    """Return what is wrong, and what to write."""
    place, given, context = first["loc"], first["input"], first.get("ctx", {})
    described = _part(schema, place).get("description", "").rstrip(".") if place else ""
    about = f": {described}" if described else ""
    kind = first["type"].removesuffix("_type").removesuffix("_parsing")
    if kind == "extra_forbidden":
        known = sorted(_part(schema, place[:-1]).get("properties", {}))
        near = get_close_matches(str(place[-1]), known, 1)
        meant = f". Is it {near[0]}?" if near else ", or it is of another version of the engine."
        return f"is no key that is known here{meant} There are: {', '.join(known) or 'none'}"
    number = str(given).replace(",", ".", 1)
    if kind in ("float", "int") and number != str(given) and number.replace(".", "", 1).isdigit():
        about = f"; write {number}"  # a comma, where a number belongs
    if kind == "string" and isinstance(given, int | float):
        return f"{given!a} is a number where text belongs: put it in quotes{about}"
    said = _SAID.get(kind)
    return said.format(given=given, about=about, **context) if said else first["msg"].removeprefix("Value error, ")


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


def _problem(error: yaml.YAMLError) -> str:
    """Return ":line: what is wrong"; for a bracket or quote that is never closed, the line that opens it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ": not YAML"
    said, line = error.problem or "", error.problem_mark.line + 1
    if error.context_mark is not None and "end of stream" in said:
        what = "quote" if "quoted" in (error.context or "") else "bracket"
        return f":{error.context_mark.line + 1}: a {what} that begins here is never closed"
    return f":{line}: {next((meant for key, meant in _MEANT.items() if key in said), said)}"


def _refuse_twice(node: yaml.Node | None) -> None:
    """Raise YAMLError for a key that stands twice in one place: YAML would take the last, in silence."""
    todo, seen = [node], set[int]()
    while todo:
        each = todo.pop()
        if not isinstance(each, yaml.CollectionNode) or id(each) in seen:  # a part may hold itself
            continue
        seen.add(id(each))
        if isinstance(each, yaml.SequenceNode):
            todo += each.value
            continue
        lines: dict[str, int] = {}
        for key, value in each.value:
            todo.append(value)
            mark = key.start_mark
            if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, mark.line + 1) != mark.line + 1:
                said = f"{key.value}: stands in line {lines[key.value]}, too. Keep one of them"
                raise yaml.MarkedYAMLError(problem=said, problem_mark=mark)
