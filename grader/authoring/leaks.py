"""Whether anything hidden stands in what is released: compared line by line, spaces and quotes normalised.

A line counts as released where it stands alone, behind a remark's sign, in any text of a notebook
or of a fingerprint file; a long one wherever it stands, also spread over several lines.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..course import Course
from ..course.secret import FOLDER
from .strip import solution_parts, strip

SHORTEST = 16  # characters: "else:" and "return out" are everybody's
LONG = 40  # characters: nobody writes this many in a row by chance
INSTRUCTORS = ("solutions/", "grader/hidden/", "docs/misconceptions.md", f"{FOLDER}/")


@dataclass(frozen=True)
class Hidden:
    """What may not be released: normalised lines, and the secret where there is one."""

    lines: frozenset[str]
    secret: bytes | None

    @cached_property
    def _by_start(self) -> dict[str, list[str]]:
        by_start: dict[str, list[str]] = {}
        for line in self.lines:
            by_start.setdefault(line[:SHORTEST], []).append(line)
        return by_start

    def sentence(self, name: str, content: bytes) -> str | None:
        """What this file gives away. Any bytes will do: git's history holds files of every kind."""
        if name.startswith(INSTRUCTORS):
            return f"{name} is the instructor's alone"
        if self.secret is not None and self.secret in content:
            return f"{name} holds the course's secret"
        line = self._first_line(name, content)
        return None if line is None else f"{name} holds a hidden line: {line!r}"

    def _first_line(self, name: str, content: bytes) -> str | None:
        texts = list(_texts_of(name, content))
        found = self.lines & {form for text in texts for line in text.splitlines() for form in _forms(line)}
        anywhere = SHORTEST if name.endswith(".safetensors") else LONG
        for text in texts:
            for whole in {_squeezed(text), "".join(_normalised(line) for line in text.splitlines())}:
                found |= {line for line in self._within(whole) if len(line) >= anywhere}
        return min(found, default=None)

    def _within(self, whole: str) -> Iterator[str]:
        """Every hidden line in a text without blanks."""
        for i in range(len(whole) - SHORTEST + 1):
            for line in self._by_start.get(whole[i : i + SHORTEST], ()):
                if whole.startswith(line, i):
                    yield line


def hidden_of(course: Course) -> Hidden:
    """What a release of this course may not hold."""
    path = course.root / FOLDER / "secret"
    return Hidden(hidden_lines(course), path.read_bytes().strip() if path.exists() else None)


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """A sentence for every released file that holds something hidden."""
    hidden = hidden_of(course)
    return tuple(s for name, content in files.items() if (s := hidden.sentence(name, content)) is not None)


def hidden_lines(course: Course) -> frozenset[str]:
    """Every line, normalised, of a solution part, a check or a mutant, but for those that give nothing away."""
    solutions: set[str] = set()
    signatures: set[str] = set()
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            path = course.solution(assignment, exercise)
            source = path.read_text(encoding="utf-8")
            solutions |= {_normalised(line) for line in solution_parts(source)}
            signatures |= set(_signatures(strip(source, path.name)))
    hidden: set[str] = set()
    for path in (course.root / "grader" / "hidden").rglob("*.py"):
        hidden |= {_normalised(line) for line in path.read_text(encoding="utf-8").splitlines()}
    shared = {line for line in hidden if any(line in signature for signature in signatures)}  # by mutants and stubs
    secret = solutions | (hidden - shared)
    return frozenset(line for line in secret if len(line) >= SHORTEST and not _is_common(line))


def _signatures(stub: str) -> Iterator[str]:
    """Every signature, from `def` to the colon, normalised."""
    lines = stub.splitlines()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            yield "".join(_normalised(line) for line in lines[node.lineno - 1 : node.body[0].lineno - 1])


def _texts_of(name: str, content: bytes) -> Iterator[str]:
    """Every text in a file."""
    try:
        if name.endswith(".safetensors"):
            yield "\n".join(_texts(json.loads(_header(content))))
            return
        if name.endswith((".ipynb", ".json")):
            yield "\n".join(_texts(json.loads(content)))
    except (ValueError, RecursionError):
        pass  # not what its name says: as it stands, then
    yield content.decode("utf-8", errors="replace")


def _header(content: bytes) -> str:
    """The text of a safetensors file; the rest is numbers."""
    return content[8 : 8 + int.from_bytes(content[:8], "little")].decode("utf-8")


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, texts that are JSON themselves opened, lines of one list joined."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            inner = None
        yield from _texts(inner) if isinstance(inner, dict | list) else (value,)
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        yield "".join(value)
        yield from value
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(part)


def _forms(line: str) -> tuple[str, str]:
    """A line as code, and as the code that it would be without a remark's sign before it."""
    return _normalised(line), _normalised(line.lstrip("#>*- \t"))


def _normalised(line: str) -> str:
    return _squeezed(line.split("#")[0])


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).replace("'", '"')


def _is_common(line: str) -> bool:
    """Imports, signatures, prose and the like, which give nothing away."""
    starts = ("import", "from", "def", "class", "super().__init__", '"""', "withtorch.no_grad", "return{", "@")
    if line.startswith(starts) or re.fullmatch(r"raise\w+\(", line):
        return True
    return not re.search(r"[=(\[]", line)
