"""The lines that may not be released, and where in a text each counts. By default a line counts anywhere.

Common lines count only as a whole line. These occur within a line of the engine, or in a lesson without being part of a
solution.

Short lines are taken from solutions only, and only if nobody else writes them. They count as a whole line or as a
separate part of one. Shorter lines, such as `else:`, are not compared, because every course has them.
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
from .phrases import Phrases, Text, Wanted, as_code, length, normalised
from .strip import solution_parts, strip
from .wheel import engine_files

SHORT, MIDDLE, LONG = 10, 16, 40  # the least characters without blanks of each class; a long line is never common
WIDESPREAD = 3  # a short line in this many right attempts is one that everybody writes
NOTHING = ("import ", "from ", "def ", "class ", "super ( ) . __init__", '" " "', "with torch . no_grad")
NOTHING_IN_A_BANK = ("return {", "@ ")


@dataclass(frozen=True)
class HiddenLine:
    """A hidden line as it is written, and its file."""

    text: str
    path: str
    of_solution: bool


@dataclass(frozen=True)
class HiddenLines:
    """The hidden lines of a course. origin: each line by its normal form."""

    origin: Mapping[str, HiddenLine]
    wanted: Wanted

    def first_in(self, text: str) -> HiddenLine | None:
        """The first hidden line in this text; None if there is none."""
        found = min(self.wanted.within(text), default=None)
        return None if found is None else self.origin[found]


def hidden_lines(course: Course) -> HiddenLines:
    """Every line of a solution part, a check or a mutant, except those that reveal nothing."""
    stubs = [strip(path.read_text(encoding="utf-8"), path.name) for path in _solutions(course)]
    lines = dict(_of_bank(course, stubs)) | dict(_of_solutions(course))
    common = _common(lines, stubs)
    short = {form for form in lines if length(form) < MIDDLE}
    longer = lines.keys() - short
    wanted = Wanted(Phrases(longer - common), frozenset(longer), frozenset(short - common - _widespread(course)))
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
    """The lines of checks, mutants, right and wrong attempts."""
    signatures = [signature for stub in stubs for signature in _signatures(stub)]
    for path in sorted((course.root / "grader").rglob("*.py")):
        for text in path.read_text(encoding="utf-8").splitlines():
            form = as_code(text)
            if length(form) < MIDDLE or _is_harmless(form) or any(f" {form} " in s for s in signatures):
                continue
            yield form, HiddenLine(text.strip(), str(path.relative_to(course.root)), of_solution=False)


def _signatures(stub: str) -> Iterator[str]:
    """Every function signature in normal form, from `def` to the colon."""
    lines = stub.splitlines()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            forms = (as_code(line) for line in lines[node.lineno - 1 : node.body[0].lineno - 1])
            yield f" {' '.join(forms)} "


def _is_harmless(form: str) -> bool:
    """Whether the line is an import, a signature, prose or the like, which reveal nothing."""
    if form.startswith((*NOTHING, *NOTHING_IN_A_BANK)) or re.fullmatch(r"raise \w+ \(", form):
        return True
    return not re.search(r"[=(\[]", form)


def _common(lines: Mapping[str, HiddenLine], stubs: list[str]) -> set[str]:
    phrases = Phrases(form for form in lines if length(form) < LONG)
    of_lessons = {form for stub in stubs for form in phrases.within(Text(normalised(stub)))}
    given_away = {form for form in of_lessons if lines[form].of_solution and length(form) >= MIDDLE}
    return of_lessons - given_away | phrases.within(_engine())


@cache
def _engine() -> Text:
    """The text of the released engine."""
    contents = (content for _, content in engine_files(templates=False))
    return Text("\n".join(normalised(content.decode("utf-8", "replace")) for content in contents))


def _widespread(course: Course) -> set[str]:
    """The lines that several right attempts contain independently."""
    counted: Counter[str] = Counter()
    for path in (course.root / "grader" / "right").rglob("*.py"):
        counted.update({as_code(line) for line in path.read_text(encoding="utf-8").splitlines()})
    return {form for form, count in counted.items() if count >= WIDESPREAD}
