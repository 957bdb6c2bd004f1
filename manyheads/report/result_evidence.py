"""Tell a result as evidence: its functions and its checks, in the words of `course check`, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..evidence import CheckEvidence, FunctionEvidence
from ..result import ExerciseResult
from ..submission import AttemptSource, lines_of, named_line, proved_line
from ..submission.unwritten import defined_on
from .words import FunctionReport, attempt_words


def evidence_of(
    result: ExerciseResult, source: AttemptSource, shown: Callable[[FunctionReport], int] = lambda report: 1
) -> tuple[tuple[FunctionEvidence, ...], tuple[CheckEvidence, ...]]:
    """Return the functions and the checks of a result. shown: how many hints were shown, of a function that has one."""
    words = attempt_words(result)
    states = {function.name: function.state for function in result.functions}
    functions = tuple(
        _function(report, states.get(report.name, "wrong"), shown(report) if report.hint else 0, source)
        for report in words.functions
    )
    of_check = {
        check.id: made for report, made in zip(words.functions, functions, strict=True) for check in report.failed
    }
    return functions, tuple(_checks(result, of_check, {made.name: made for made in functions}))


def _function(report: FunctionReport, state: str, shown: int, source: AttemptSource) -> FunctionEvidence:
    proved = [each.line for each in report.lines]
    line = proved[0] if proved else named_line(report.evidence, source) or defined_on(source.source, report.name)
    told = {key: getattr(report, key) for key in ("name", "says", "check", "evidence", "own_check", "also", "hint")}
    misconception = report.named[0].title if report.named else ""
    known = {"state": state, "misconception": misconception, "hint_level": shown, "lines": proved}
    return FunctionEvidence.model_validate({**told, **known, **placed(source, line or 1)})


def _checks(
    result: ExerciseResult, of_check: dict[str, FunctionEvidence], by_name: dict[str, FunctionEvidence]
) -> Iterator[CheckEvidence]:
    for check in result.checks:
        of = of_check.get(check.id)
        stands = of or by_name.get(check.function)
        told = check.model_dump(exclude={"hint"})
        told |= stands.model_dump(include={"line", "column", "end_column", "cell", "line_in_cell"}) if stands else {}
        told |= of.model_dump(include={"misconception", "hint", "hint_level"}) if of else {}
        yield CheckEvidence.model_validate(told)


def placed(source: AttemptSource, line: int) -> dict[str, int]:
    """Return where a line of an attempt stands, as evidence has it; nothing for line 0."""
    if not line:
        return {}
    text = next(iter(lines_of(source.source)[line - 1 : line]), "").rstrip()
    columns = {"column": 1 + len(text) - len(text.lstrip()), "end_column": 1 + len(text)}
    return proved_line(source, line).model_dump(exclude={"edit"}) | columns
