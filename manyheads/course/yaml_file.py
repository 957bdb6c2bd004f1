"""Read a YAML file that people write. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..errors import CourseFault


class Unread(CourseFault):
    """The file cannot be read as YAML. The text says where, and lacks what to do next."""


def read_yaml(path: Path) -> tuple[Any, yaml.Node | None]:
    """The data, and the nodes that know their lines. Raises Unread, and OSError."""
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node  # parsed once
    except UnicodeDecodeError as error:
        raise Unread(f"{path} is not UTF-8 (byte {error.start}). Next: save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise Unread(f"{path}{_problem(error)}. Next: mend that line") from None
    except (ValueError, RecursionError):  # a date such as 2026-13-45, which YAML takes for one
        raise Unread(f"{path}: not YAML that can be read. Next: mend its dates and brackets") from None


def first_problem(path: Path, node: yaml.Node | None, error: ValidationError) -> str:
    """path:line: name: what is wrong, of the first thing that a model refuses."""
    first = error.errors()[0]
    place = first["loc"]
    named = place[1:] if place and isinstance(place[0], int) else place  # of a list the line says which
    name = ".".join(map(str, named)) or ("" if place else "the file")
    said = first["msg"].removeprefix("Value error, ")
    return f"{path}:{line_of(node, place)}: {name}: {said}" if name else f"{path}:{line_of(node, place)}: {said}"


def line_of(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
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
