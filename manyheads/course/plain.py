"""What a model refuses of a YAML file, in words for who wrote the file: the key, what stands there, and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Place = tuple[int | str, ...]


def first_of(error: ValidationError) -> ErrorDetails:
    """What to say first: a key that nobody knows, for it may be the one that another sentence misses."""
    found = error.errors()
    return next((each for each in found if each["type"] == "extra_forbidden"), found[0])


def plainly(first: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong, and what to write."""
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
        """The part of it that stands for this place; {} where the place is in none."""
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
