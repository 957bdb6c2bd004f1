"""Tell a result as evidence: its functions and its checks, in the words of `course check`, each with its place."""

from __future__ import annotations

from collections.abc import Callable

from ..evidence import CheckEvidence, FunctionEvidence
from ..result import ExerciseResult
from ..submission import AttemptSource, lines_of, proved_line
from ..submission.read import named_line
from ..submission.unwritten import DEFINITIONS, statements_of
from .words import FunctionReport, attempt_words

_PLACE = {"line", "column", "end_column", "cell", "line_in_cell"}


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
    told = {key: getattr(report, key) for key in ("says", "check", "evidence", "own_check", "also", "hint")}
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
