"""Whether anything hidden stands in what is released: compared line by line, spaces and comments taken out."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

from ..course import Course
from .strip import solution_parts, strip

SHORTEST = 16  # characters: "else:" and "return out" are everybody's


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """A sentence for every released file that holds a hidden line."""
    hidden = hidden_lines(course)
    found = []
    for name, content in files.items():
        if name.endswith(".safetensors"):
            text = re.sub(r"\s+", "", "\n".join(_texts(json.loads(_header(content)))))
            shared = sorted(line for line in hidden if line in text)
        else:
            shared = sorted(hidden & {_normalised(line) for line in _lines(name, content)})
        if shared:
            found.append(f"{name} holds a hidden line: {shared[0]!r}")
    return tuple(found)


def hidden_lines(course: Course) -> frozenset[str]:
    """Every line, normalised, of a solution part, a check or a mutant, but for those that give nothing away."""
    solutions: set[str] = set()
    signatures: set[str] = set()
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            path = course.solution(assignment, exercise)
            source = path.read_text(encoding="utf-8")
            solutions |= {_normalised(line) for line in solution_parts(source)}
            signatures |= {_normalised(line) for line in _signature_lines(strip(source, path.name))}
    hidden: set[str] = set()
    for path in (course.root / "grader" / "hidden").rglob("*.py"):
        hidden |= {_normalised(line) for line in path.read_text(encoding="utf-8").splitlines()}
    secret = solutions | (hidden - signatures)  # which mutants share with stubs
    return frozenset(line for line in secret if len(line) >= SHORTEST and not _is_common(line))


def _signature_lines(stub: str) -> Iterator[str]:
    """The lines of every signature, from `def` to the colon."""
    lines = stub.splitlines()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            yield from lines[node.lineno - 1 : node.body[0].lineno - 1]


def _header(content: bytes) -> str:
    """The text of a safetensors file; the rest is numbers."""
    return content[8 : 8 + int.from_bytes(content[:8], "little")].decode("utf-8")


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, texts that are JSON themselves opened."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            inner = None
        yield from _texts(inner) if isinstance(inner, dict | list) else (value,)
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(part)


def _lines(name: str, content: bytes) -> list[str]:
    text = content.decode("utf-8")
    if name.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    return text.splitlines()


def _normalised(line: str) -> str:
    return re.sub(r"\s+", "", line.split("#")[0])


def _is_common(line: str) -> bool:
    """Imports, signatures, prose and the like, which give nothing away."""
    starts = ("import", "from", "def", "class", "super().__init__", '"""', "withtorch.no_grad", "return{", "@")
    return line.startswith(starts) or not re.search(r"[=(\[]", line)
