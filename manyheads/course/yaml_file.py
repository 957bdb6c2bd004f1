"""Read a YAML file that people write. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from ..errors import CourseFault
from .plain import first_of, plainly


class Unread(CourseFault):
    """The file cannot be read as YAML. The text says where, and lacks what to do next."""


def read_yaml(path: Path) -> tuple[Any, yaml.Node | None]:
    """The data, and the nodes that know their lines. Raises Unread, and OSError."""
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
    """The key, with those around it in its row; the line says which row it is."""
    named = [each if isinstance(each, int) or "[" not in each else None for each in place]  # a validator has brackets
    last = max((i for i, each in enumerate(named) if isinstance(each, int)), default=-1)
    own = [each for each in named[last + 1 :] if isinstance(each, str)]
    return ".".join(own) or ("the file" if set(named) <= {None} else "")


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


# What YAML's reader says, and what it comes from.
_MEANT = {
    "cannot start any token": "a tab, or a sign that YAML keeps for itself, begins the line: write blanks, or put the text in quotes",
    "expected <block end>": "its indentation does not fit the lines above: rows of one list begin in the same column",
    "mapping values are not allowed": "a colon where none can be: put the text in quotes, or begin it in the column of the keys above",
    "could not find expected ':'": "a colon is missing, in this line or the one above",
}


def _problem(error: yaml.YAMLError) -> str:
    """ ":line: what is wrong". For a bracket or quote that is never closed: the line that opens it."""
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
