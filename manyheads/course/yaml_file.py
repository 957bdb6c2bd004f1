"""Read a YAML file that people write. Every error names the file and the line, in words for who wrote it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..errors import CourseFault

# What a model refuses of a YAML file, in words for who wrote the file: the key, what stands there, and what to write.

Place = tuple[int | str, ...]


def first_of(error: ValidationError) -> ErrorDetails:
    """Return what to say first: a key that nobody knows, for it may be the one that another sentence misses."""
    found = error.errors()
    return next((each for each in found if each["type"] == "extra_forbidden"), found[0])


def plainly(first: ErrorDetails, model: type[BaseModel]) -> str:
    """Return what is wrong, and what to write."""
    schema = _Schema(model.model_json_schema())
    place, given = first["loc"], first["input"]
    described = schema.at(place).get("description", "").rstrip(".") if place else ""
    if first["type"] == "extra_forbidden":
        return _unknown(str(place[-1]), sorted(schema.at(place[:-1]).get("properties", {})))
    if first["type"] == "missing":
        return "is missing, and has to be there"
    said = _SAID.get(first["type"].removesuffix("_type").removesuffix("_parsing"))
    if said is not None:
        return said(given, first.get("ctx", {}), f": {described}" if described else "")
    return first["msg"].removeprefix("Value error, ")


def _unknown(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    meant = f". Is it {near[0]}?" if near else ", or it is of a newer engine than this one."
    return f"is no key that is known here{meant} There are: {', '.join(known) or 'none'}"


def _number(given: Any, _: Mapping[str, Any], described: str) -> str:
    comma = isinstance(given, str) and given.replace(",", ".", 1).replace(".", "", 1).isdigit() and "," in given
    return f"{given!a} is no number{'; write ' + given.replace(',', '.') if comma else described}"


def _more(given: Any, context: Mapping[str, Any], _: str) -> str:
    if "gt" in context:
        return f"{given!a} is too small: it should be greater than {context['gt']:g}"
    return f"{given!a} is too small: it should be at least {context['ge']:g}"


def _text(given: Any, _: Mapping[str, Any], described: str) -> str:
    if isinstance(given, int | float):
        return f"{given!a} is a number where text belongs: put it in quotes{described}"
    return f"should be text{described}"


_SAID: dict[str, Callable[[Any, Mapping[str, Any], str], str]] = {
    "float": _number,
    "int": _number,
    "int_from_float": _number,
    "greater_than": _more,
    "greater_than_equal": _more,
    "string": _text,
    "string_too_short": lambda _, __, described: f"is empty{described}",
    "string_pattern_mismatch": lambda given, _, described: f"{given!a} does not fit{described}",
    "too_short": lambda _, __, ___: "is an empty list, and should have at least one row",
    "literal_error": lambda given, context, _: f"{given!a} is not {context['expected']}",
    "bool": lambda given, _, __: f"{given!a} is neither true nor false",
    "model": lambda _, __, described: f"should be keys with their values, each `key: value`{described}",
    "dict": lambda _, __, described: f"should be keys with their values, each `key: value`{described}",
    "tuple": lambda _, __, described: f"should be a list, each row beginning with `- `{described}",
    "list": lambda _, __, described: f"should be a list, each row beginning with `- `{described}",
}


class _Schema:
    """A JSON Schema, asked by the places of what a model refuses."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema

    def at(self, place: Place) -> dict[str, Any]:
        """Return the part of it that stands for this place; {} where the place is in none."""
        part = self._resolved(self._root)
        for step in place:
            inner = part.get("items") if isinstance(step, int) else part.get("properties", {}).get(step)
            if inner is None:
                return {}
            part = self._resolved(inner)
        return part

    def _resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        """With what it refers to in its place, and of several kinds the first."""
        own = {key: part[key] for key in ("description",) if key in part}
        if "anyOf" in part:
            return {**self._resolved(part["anyOf"][0]), **own}
        if "$ref" in part:
            return {**self._resolved(self._root["$defs"][part["$ref"].rsplit("/", 1)[-1]]), **own}
        return part


# Read a YAML file that people write. Every error names the file and the line.


class Unread(CourseFault):
    """The file cannot be read as YAML. The text says where, and lacks what to do next."""


def read_yaml(path: Path) -> tuple[Any, yaml.Node | None]:
    """Return the data, and the nodes that know their lines. Raises Unread, and OSError."""
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        _refuse_twice(node)
        return (None if node is None else loader.construct_document(node)), node  # parsed once
    except UnicodeDecodeError as error:
        raise Unread(f"{path} is not UTF-8 (byte {error.start}). Next: save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise Unread(f"{path}{_problem(error)}. Next: mend that line") from None
    except (ValueError, RecursionError):  # a date such as 2026-13-45, which YAML takes for one
        raise Unread(f"{path}: not YAML that can be read. Next: mend its dates and brackets") from None


def first_problem(path: Path, node: yaml.Node | None, error: ValidationError, model: type[BaseModel]) -> str:
    """path:line: name: what is wrong, of the first thing that this model refuses."""
    first = first_of(error)
    line = line_of(node, first["loc"])
    name = _name(first["loc"])
    said = plainly(first, model)
    return f"{path}:{line}: {name}: {said}" if name else f"{path}:{line}: {said}"


def _name(place: tuple[int | str, ...]) -> str:
    """Return the key, with those around it in its row; the line says which row it is."""
    named = [each if isinstance(each, int) or "[" not in each else None for each in place]  # a validator has brackets
    last = max((i for i, each in enumerate(named) if isinstance(each, int)), default=-1)
    own = [part for part in named[last + 1 :] if isinstance(part, str)]
    return ".".join(own) or ("the file" if set(named) <= {None} else "")


def line_of(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """Return the line (from 1) of the deepest part of `location` that the file contains."""
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


# What YAML's reader says, and what it comes from.
_MEANT = {
    "cannot start any token": "a tab, or a sign that YAML keeps for itself, begins the line: write blanks, or put the text in quotes",
    "expected <block end>": "its indentation does not fit the lines above: rows of one list begin in the same column",
    "mapping values are not allowed": "a colon where none can be: put the text in quotes, or begin it in the column of the keys above",
    "could not find expected ':'": "a colon is missing, in this line or the one above",
}


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
        if id(each) in seen:  # a part may hold itself
            continue
        seen.add(id(each))
        if isinstance(each, yaml.SequenceNode):
            todo += each.value
        elif isinstance(each, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in each.value:
                todo.append(value)
                if isinstance(key, yaml.ScalarNode) and key.value in lines:
                    said = f"{key.value}: stands in line {lines[key.value]}, too. Keep one of them"
                    raise yaml.MarkedYAMLError(problem=said, problem_mark=key.start_mark)
                if isinstance(key, yaml.ScalarNode):
                    lines[key.value] = key.start_mark.line + 1
