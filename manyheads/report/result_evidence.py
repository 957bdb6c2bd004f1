"""What a student may see of their own attempts, as data: `--json`, `course lsp` and other programs give these words alone.

It holds no reference, no recorded answer, and no misconception's id. Words of manyheads/result.py mean here what they mean there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..result import ExerciseResult, Outcome, State
from ..submission import AttemptSource, lines_of, proved_line
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.standing import named_line
from .words import WRONG, FunctionReport, attempt_words

_PLACE = {"line", "column", "end_column", "cell", "line_in_cell"}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class _Seen(_Model):
    """What was seen, on a line of the attempt.

    line: of the file; of a notebook, of its code cells joined: one that is proved, else one that an exception names, else that
    of the function's `def`; 0 where there is none. column, end_column: of its text, from 1 on.
    cell, line_in_cell: of a notebook, the code cell, counted from 1, and the line within it; else 0.
    misconception: the title of what explains it, "" where nothing does. hint: the first to that.
    hint_level: how many hints to it were shown.
    """

    line: int = 0
    column: int = 1
    end_column: int = 1
    cell: int = 0
    line_in_cell: int = 0
    function: str = ""
    evidence: str = ""
    misconception: str = ""
    hint: str = ""
    hint_level: int = 0


class CheckEvidence(_Seen):
    """The outcome of one visible check, at the line of its function."""

    id: str
    title: str
    outcome: Outcome
    score: float
    max_score: float


class FunctionEvidence(_Seen):
    """One function or class, in the words of `course check`; without a name what is wrong with the whole file.

    says: what stands beside the name. check: the first check that failed here.
    also: what is proved here besides. lines: all that are proved, the first of them `line`.
    """

    state: State
    says: str = ""
    check: str = ""
    also: str = ""
    lines: tuple[int, ...] = ()

    @property
    def report(self) -> FunctionReport:
        """The same in the words' own form, which has the order in which they are told."""
        return FunctionReport(self.function, WRONG, self.says, self.check, self.evidence, self.also, self.hint)

    @property
    def sentence(self) -> str:
        """What is said of it, and what was seen, on one line."""
        head = ": ".join(filter(None, (self.function, self.says or self.check)))
        seen = self.evidence[:1].upper() + self.evidence[1:]
        ended = (part if part.endswith((".", "?", "!")) else f"{part}." for part in (head, seen) if part)
        return " ".join(" ".join(ended).split())


class ExerciseEvidence(_Model):
    """One exercise.

    file: what was read, from the course's folder on. score: the points that are seen here. unseen: those only grading asks.
    problem: why there is nothing more: the file is missing. next: the command to run next.
    """

    id: str
    title: str
    assignment: str
    file: str
    state: Literal["done", "in progress", "untouched", "missing"]
    score: float
    max_score: float
    unseen: float = 0.0
    functions: tuple[FunctionEvidence, ...] = ()
    checks: tuple[CheckEvidence, ...] = ()
    problem: str = ""
    note: str = ""
    next: str = ""

    @property
    def wrong(self) -> tuple[FunctionEvidence, ...]:
        """What is wrong, in the order of the file."""
        return tuple(each for each in self.functions if each.state in ("wrong", "undefined"))


class Evidence(_Model):
    """What one command found, of each exercise that it was asked about.

    version: another where a reader of an earlier one would be misled. A new key alone does not change it.
    """

    version: Literal[1] = 1
    command: Literal["check", "status"]
    exercises: tuple[ExerciseEvidence, ...]


def evidence_of(
    result: ExerciseResult, source: AttemptSource, shown: Callable[[FunctionReport], int] = lambda report: 1
) -> tuple[tuple[FunctionEvidence, ...], tuple[CheckEvidence, ...]]:
    """Return the functions and the checks of a result. shown: how many hints were shown, of a function that has one.

    A check that passed stands at the `def` of its function; of one that waits for another function, that is told.
    """
    words = attempt_words(result)
    states = {function.name: function.state for function in result.functions}
    functions = {
        report.name: _function(report, source, shown(report) if report.hint else 0, states.get(report.name, "wrong"))
        for report in words.functions
    }
    of_check = {check.id: functions[report.name] for report in words.functions for check in report.failed}
    checks = []
    for check in result.checks:
        stands = of_check.get(check.id) or functions.get(check.function)
        seen = {"misconception", "hint", "hint_level"} if check.id in of_check else set()
        told = stands.model_dump(include=seen | _PLACE) if stands else {}
        if check.outcome == "passed" and (line := defined_on(source.source, check.function)):
            told |= placed(source, line)
        elif stands and stands.state == "waiting":
            told |= {"evidence": stands.says}
        checks.append(CheckEvidence.model_validate({**check.model_dump(exclude={"hint"}), **told}))
    return tuple(functions.values()), tuple(checks)


def _function(report: FunctionReport, source: AttemptSource, shown: int, state: str) -> FunctionEvidence:
    proved = [each.line for each in report.lines]
    line = proved[0] if proved else named_line(report.evidence, source) or defined_on(source.source, report.name) or 1
    told = {key: getattr(report, key) for key in ("says", "check", "evidence", "also", "hint")}
    told |= {"function": report.name, "state": state, "lines": proved, **placed(source, line)}
    told |= {"misconception": report.named[0].title if report.named else "", "hint_level": shown}
    return FunctionEvidence.model_validate(told)


def placed(source: AttemptSource, line: int) -> dict[str, int]:
    """Return where a line of an attempt stands, as evidence has it."""
    text = next(iter(lines_of(source.source)[line - 1 : line]), "").rstrip()
    columns = {"column": 1 + len(text) - len(text.lstrip()), "end_column": 1 + len(text)}
    return proved_line(source, line).model_dump(exclude={"edit"}) | columns


def defined_on(source: str, name: str) -> int:
    """Return the line on which the function or class of this name begins, the last where there are several; 0 where none does."""
    defined = (part for part in statements_of(source) if isinstance(part, DEFINITIONS) and part.name == name)
    return max((part.lineno for part in defined), default=0)
