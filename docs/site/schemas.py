"""Generate the JSON Schemas that ship with the engine from its models, and make pages of them.

`python -m docs.site.schemas` writes the schemas. The page of a schema has a table of keys for each
kind of entry.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import manyheads
from manyheads.course.course_yaml_schema import CourseFile
from manyheads.course.final_scores import OverridesFile
from manyheads.result import Result

ENGINE = Path(manyheads.__file__).parent
SCHEMAS: dict[Path, type[BaseModel]] = {
    ENGINE / "course" / "course.schema.json": CourseFile,
    ENGINE / "course" / "overrides.schema.json": OverridesFile,
    ENGINE / "result.schema.json": Result,
}

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


def schema_text(model: type[BaseModel]) -> str:
    """Return the text of the schema's file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def schema_page(name: str, title: str, introduction: str) -> str:
    """Return the page of `<name>.schema.json`."""
    path = next(schema_path for schema_path in SCHEMAS if schema_path.name == f"{name}.schema.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    file = path.relative_to(ENGINE.parent).as_posix()
    lines = [
        f"# {title}",
        "",
        f"{introduction} This page is made from `{file}`, which editors read, too.",
        "",
    ]
    lines += ["## At the top", "", *_entry(schema, SCHEMAS[path])]
    for definition, entry in schema.get("$defs", {}).items():
        model = getattr(sys.modules[SCHEMAS[path].__module__], definition, None)
        lines += [f"## {definition}", "", *_entry(entry, model)]
    return "\n".join(lines)


def _entry(entry: Mapping[str, Any], model: type[BaseModel] | None) -> Iterator[str]:
    keys = entry.get("properties", {})
    text, meanings = key_meanings(entry.get("description", ""), keys)
    for base in model.__mro__[1:] if model else ():
        if base.__module__.startswith("manyheads."):
            for key, words in key_meanings(vars(base).get("__doc__") or "", keys)[1].items():
                meanings[key] = (
                    f"{meanings[key]}. {words[0].upper()}{words[1:]}" if key in meanings else words
                )
    if text:
        yield from (text, "")
    if "properties" not in entry:
        yield from (_type(entry), "")
        return
    required = entry.get("required", ())
    yield "| key | what stands there | default | meaning |\n|---|---|---|---|"
    for key, value in entry["properties"].items():
        default = "*needed*" if key in required else _json(value.get("default"))
        words = " ".join((value.get("description") or meanings.get(key, "")).split()).replace(
            "|", "\\|"
        )
        yield f"| `{key}` | {_type(value)} | {default} | {words} |"
    yield ""


def key_meanings(docstring: str, keys: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the whole, and what of each key: `key: words.`, or
    `key, other: words.`.
    """
    name = "|".join(map(re.escape, keys)) or "(?!)"
    start = rf"(?:^|(?<=[.;:]\s)|(?<=\n))((?:{name})(?:, (?:{name}))*): "
    summary, *fragments = re.split(start, re.sub(r"\s*\n\s*", "\n", inspect.cleandoc(docstring)))
    meanings: dict[str, str] = {}
    for names, words in zip(fragments[::2], fragments[1::2], strict=True):
        meanings |= dict.fromkeys(names.split(", "), " ".join(words.split()).rstrip(".;"))
    return " ".join(summary.split()).removesuffix("Attributes:").strip(), meanings


def _json(value: object) -> str:
    return (
        ""
        if value in (None, "", [], {}) or isinstance(value, dict)
        else f"`{json.dumps(value, ensure_ascii=False)}`"
    )


def _type(value: Mapping[str, Any]) -> str:
    """Return in words what may stand there."""
    if "$ref" in value:
        definition = value["$ref"].rpartition("/")[2]
        return f"[{definition}](#{definition.lower()})"
    if "const" in value or "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in value:
            return " or ".join(dict.fromkeys(map(_type, value[several])))
    if value.get("type") == "array":
        return f"a list: {_type(value['items'])}" if "items" in value else "a list"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"names with {_type(inner)}" if isinstance(inner, dict) else "keys and values"
    return _WORDS.get(value.get("type", ""), "anything")


if __name__ == "__main__":
    for schema_path, schema_model in SCHEMAS.items():
        schema_path.write_text(schema_text(schema_model), encoding="utf-8")
