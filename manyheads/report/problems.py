"""What is wrong with a student's own attempt, as programs read it: `--json`, a line a problem, an editor's diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..result import Diagnosed, ExerciseResult
from ..submission import AttemptSource, lines_of
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.standing import named_line
from .words import WRONG, FunctionReport, attempt_words


class Problem(NamedTuple):
    """What is said of a function or of the whole file, at a line of the attempt: its first and its last column, from 1 on."""

    report: FunctionReport
    line: int
    column: int
    end_column: int

    @property
    def sentence(self) -> str:
        """What is said of it, what was seen, and the hint, on one line."""
        report = self.report
        head = ": ".join(filter(None, (report.name, report.says or report.check)))
        seen = report.evidence[:1].upper() + report.evidence[1:]
        ended = (part if part.endswith((".", "?", "!")) else f"{part}." for part in (head, seen) if part)
        return " ".join(" ".join((*ended, report.hint and f"Hint: {report.hint}")).split())


def problems(result: ExerciseResult, source: AttemptSource) -> Iterator[Problem]:
    """Yield what is wrong, at a line that is proved, else one that an exception names, else that of the function's `def`."""
    for report in (each for each in attempt_words(result).functions if each.mark == WRONG):
        proved = next((each.line for each in report.lines), 0)
        line = proved or named_line(report.evidence, source) or defined_on(source.source, report.name) or 1
        text = next(iter(lines_of(source.source)[line - 1 : line]), "").rstrip()
        yield Problem(report, line, 1 + len(text) - len(text.lstrip()), 1 + len(text))


def defined_on(source: str, name: str) -> int:
    """Return the line on which the function or class of this name begins, the last where there are several; 0 where none does."""
    defined = (part for part in statements_of(source) if isinstance(part, DEFINITIONS) and part.name == name)
    return max((part.lineno for part in defined), default=0)


def without_ids(result: ExerciseResult) -> ExerciseResult:
    """Return what a student's programs may read: no misconception's id, no edit, and hints with their misconceptions alone."""

    def told(named: Sequence[Diagnosed]) -> tuple[Diagnosed, ...]:
        return tuple(each.model_copy(update={"id": "", "alternatives": ()}) for each in named)

    checks = tuple(check.model_copy(update={"hint": ""}) for check in result.checks)
    lines = tuple(line.model_copy(update={"edit": ""}) for line in result.lines)
    bare = {"checks": checks, "lines": lines, "diagnosis": told(result.diagnosis), "also": told(result.also)}
    return result.model_copy(update=bare)
