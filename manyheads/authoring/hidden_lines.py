"""The lines that may not be released, and how each has to stand in a text to count: wherever it is, but for two kinds.

Everyday ones: the engine has them inside a line of its own, or a lesson has and they are no solution's. They count
where they are a whole line.

Short ones: of solutions only, and only what nobody else writes. They count where they are a whole line or set off
within one. Still shorter ones, `else:` and the like, are not compared: every course has them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..course import Course
from .phrases import Phrases, Wanted, as_code, length, normalised
from .strip import solution_parts, strip
from .wheel import engine_files

SHORT, MIDDLE, LONG = 10, 16, 40  # characters without blanks: from there on; a long line is nobody's everyday one
EVERYBODYS = 3  # right attempts of different authors that have a short line
NOTHING = ("import ", "from ", "def ", "class ", "super ( ) . __init__", '" " "', "with torch . no_grad")
NOTHING_IN_A_BANK = ("return {", "@ ")


@dataclass(frozen=True)
class HiddenLine:
    """A hidden line as it is written, and the file that it is from."""

    text: str
    path: str
    of_solution: bool


@dataclass(frozen=True)
class HiddenLines:
    """origin: every line, by its normal form."""

    origin: Mapping[str, HiddenLine]
    wanted: Wanted

    def first_in(self, text: str) -> HiddenLine | None:
        """A hidden line that stands in this text."""
        found = min(self.wanted.within(text), default=None)
        return None if found is None else self.origin[found]


def hidden_lines(course: Course) -> HiddenLines:
    """Every line of a solution part, a check or a mutant, but for those that give nothing away."""
    stubs = [strip(path.read_text(encoding="utf-8"), path.name) for path in _solutions(course)]
    lines = dict(_of_bank(course, stubs)) | dict(_of_solutions(course))
    everyday = _everyday(lines, stubs)
    short = {form for form in lines if length(form) < MIDDLE}
    longer = lines.keys() - short
    wanted = Wanted(Phrases(longer - everyday), frozenset(longer), frozenset(short - everyday - _everybodys(course)))
    return HiddenLines(lines, wanted)


def _solutions(course: Course) -> list[Path]:
    return [e.solution for e in course.exercises]


def _of_solutions(course: Course) -> Iterator[tuple[str, HiddenLine]]:
    for path in _solutions(course):
        for text in solution_parts(path.read_text(encoding="utf-8")):
            form = as_code(text)
            if length(form) >= SHORT and not form.startswith(NOTHING):
                yield form, HiddenLine(text, str(path.relative_to(course.root)), of_solution=True)


def _of_bank(course: Course, stubs: list[str]) -> Iterator[tuple[str, HiddenLine]]:
    """Of checks, mutants, right and wrong attempts."""
    signatures = [signature for stub in stubs for signature in _signatures(stub)]
    for path in sorted((course.root / "grader").rglob("*.py")):
        for text in path.read_text(encoding="utf-8").splitlines():
            form = as_code(text)
            if length(form) < MIDDLE or _is_common(form) or any(f" {form} " in s for s in signatures):
                continue
            yield form, HiddenLine(text.strip(), str(path.relative_to(course.root)), of_solution=False)


def _signatures(stub: str) -> Iterator[str]:
    """Every signature, from `def` to the colon, in normal form."""
    lines = stub.splitlines()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            forms = (as_code(line) for line in lines[node.lineno - 1 : node.body[0].lineno - 1])
            yield f" {' '.join(forms)} "


def _is_common(form: str) -> bool:
    """Imports, signatures, prose and the like, which give nothing away."""
    if form.startswith((*NOTHING, *NOTHING_IN_A_BANK)) or re.fullmatch(r"raise \w+ \(", form):
        return True
    return not re.search(r"[=(\[]", form)


def _everyday(lines: Mapping[str, HiddenLine], stubs: list[str]) -> set[str]:
    phrases = Phrases(form for form in lines if length(form) < LONG)
    of_lessons = {form for stub in stubs for form in phrases.within(normalised(stub))}
    given_away = {form for form in of_lessons if lines[form].of_solution and length(form) >= MIDDLE}
    return of_lessons - given_away | phrases.within(_engine())


@cache
def _engine() -> str:
    """The released engine's text in normal form."""
    return "\n".join(normalised(content.decode("utf-8", "replace")) for _, content in engine_files(templates=False))


def _everybodys(course: Course) -> set[str]:
    """What several right attempts have of their own accord."""
    counted: Counter[str] = Counter()
    for path in (course.root / "grader" / "right").rglob("*.py"):
        counted.update({as_code(line) for line in path.read_text(encoding="utf-8").splitlines()})
    return {form for form, count in counted.items() if count >= EVERYBODYS}
