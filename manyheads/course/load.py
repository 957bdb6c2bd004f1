"""Read course.yaml, other YAML files that people write, and the course's secret. Every error names the file and the line."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.reader import ReaderError

from ..errors import CourseFault
from .file import CourseFile
from .model import Course

NAME = "course.yaml"
FOLDER = ".course"  # of the secret, beside course.yaml and ignored by git
Model = TypeVar("Model", bound=BaseModel)

_KEYS = "should be keys with their values, each `key: value`"
_SAID = {  # of a value of the wrong kind, what to write
    "missing": "is missing, and has to be there",
    "model_type": _KEYS,
    "dict_type": _KEYS,
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
    raise CourseError(f"no {NAME} in {start} or above it. Next: change to the course's folder, then: course status")


def load_course(root: Path) -> Course:
    """Load the course in this folder. Raises CourseError."""
    path = root / NAME
    try:
        return Course(root.resolve(), read_model(path, CourseFile, "course verify")[0])
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). Next: pass --course FOLDER") from None
    except CourseFault as error:
        raise CourseError(str(error)) from None


class Loader(yaml.SafeLoader):
    """YAML's reader. It leaves dates as they are written, refuses a key that stands twice, and says each line."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Read keys and their values."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in lines:
                said = f"{key.value}: stands in line {lines[key.value]}, too. Keep one of them"
                raise yaml.MarkedYAMLError(problem=said, problem_mark=key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Return what a node means."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            said = f"{str(node.value)[:40]!a} cannot be read as {node.tag.rpartition(':')[2]}"
            raise yaml.MarkedYAMLError(problem=said, problem_mark=node.start_mark) from None


Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)  # type: ignore[type-var]


def read_model(path: Path, model: type[Model], then: str) -> tuple[Model, yaml.Node | None]:
    """Return what the file says, and its nodes, of which `line_of` tells the lines. Raises CourseFault, and OSError.

    then: the command to run once the file is mended.
    """
    data, loader = path.read_bytes(), None
    try:
        loader = Loader(data.decode("utf-8"))
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
        first = next((each for each in found if each["type"] in ("extra_forbidden", "invalid_key")), found[0])
        first["loc"] = first.get("ctx", {}).get("place", first["loc"])
        line, said = line_of(node, first["loc"]), _plainly(first, model.model_json_schema())
    except (ValueError, RecursionError):  # a character by a number that none has, or thousands of brackets
        line, said = loader.line + 1 if loader else 1, "cannot be read as YAML"
    raise CourseFault(f"{path}:{line}: {said}. Next: mend that line, then {then}") from None


def line_of(node: yaml.Node | None, place: Sequence[int | str]) -> int:
    """Return the line (from 1) of the deepest part of the place that the file contains."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in map(str, place):
        inside: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        if isinstance(node, yaml.MappingNode):
            inside = {key.value: (key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        elif isinstance(node, yaml.SequenceNode):
            inside = {str(i): (each, each) for i, each in enumerate(node.value)}
        if part not in inside:
            break
        at, node = inside[part]
        line = at.start_mark.line + 1
    return line


def _plainly(error: ErrorDetails, schema: dict[str, Any]) -> str:
    """Return which key is wrong, as what, and what to write. The line says in which row it is."""
    place, given, kind = error["loc"], error["input"], error["type"]
    last = max((i for i, each in enumerate(place) if isinstance(each, int)), default=-1)
    key = ".".join(str(each) for each in place[last + 1 :] if "[" not in str(each))  # a validator has brackets
    named = f"{key}: " if key else "" if place else "the file: "
    models = (schema, *schema.get("$defs", {}).values())
    known = {name: str(about.get("description", "")) for m in models for name, about in m.get("properties", {}).items()}
    if kind == "extra_forbidden":
        near = next(iter(get_close_matches(str(place[-1]), known.keys() - {place[-1]}, 1)), "")
        return f"{named}is no key that is known here{f' (is it {near}?)' if near else ', or one of another version'}"
    if kind == "value_error":
        return named + error["msg"].removeprefix("Value error, ")
    shown = ascii(given)[:50] if given is None or isinstance(given, str | int | float) else ""
    said = error["msg"].partition(", unable")[0] + (f", not {shown}" if shown else "")
    said = _SAID[kind].format(given=shown or "several values") if kind in _SAID else said
    about = known.get(str(place[-1])) if place else ""
    return f"{named}{said}: {about}" if about else named + said


def _problem(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """Return the line, and what is wrong; for a bracket or quote that is never closed, the line that opens it."""
    said, context, mark = error.problem or "", error.context_mark, error.problem_mark or error.context_mark
    if context is not None and "end of stream" in said:
        what = "quote" if "quoted" in (error.context or "") else "bracket"
        return context.line + 1, f"a {what} that begins here is never closed"
    if "expected <block end>" in said:
        said = "its indentation does not fit the lines above"
    return mark.line + 1 if mark else 1, said


def course_secret(root: Path) -> bytes:
    """Return the secret, from which hidden inputs are drawn, made on first use. Raises CourseError if that fails.

    Only its owner can read it, and no release contains it.
    """
    path = root / FOLDER / "secret"
    named = quote(str(path))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
        text, mode = path.read_bytes().strip(), path.stat().st_mode
    except OSError as error:
        raise CourseError(f"{path} can be neither read nor made ({error.strerror}). Next: chmod u+rw {named}") from None
    if len(text) < 32:
        raise CourseError(f"{path} holds no secret. Next: rm {named} (a new one is made; inputs will differ)")
    if mode & 0o077:
        raise CourseError(f"{path} can be read by others. Next: chmod 600 {named}")
    return text
