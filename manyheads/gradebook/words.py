"""A result as plain text, for a gradebook's comment or a cell's output."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..report.adjustments import told
from ..report.functions import FunctionReport
from ..report.words import attempt_words, said_of_not_graded
from ..result import Adjustment, CheckResult, ExerciseResult

_INDENT = "    "  # four blanks: nbgrader renders comments as Markdown, in which this is literal text


def comment(result: ExerciseResult, isolation: str, decided: Sequence[Adjustment] = ()) -> str:
    """The comment on an attempt, function by function: what the student did, what was seen, a hint.

    decided: by which rules it counts as it does; they stand first.
    """
    words = attempt_words(result)
    lines = [told(each) for each in decided]
    lines += [result.note] if result.note else []
    if words.passed:
        lines.append("All checks passed.")
    else:
        lines += [line for function in words.functions for line in _said(function)]
    if words.hint:
        lines.append(f"hint: {words.hint}")
    lines.append(f"(isolation: {isolation})")
    return "\n".join(_INDENT + line for text in lines for line in text.splitlines())


def _said(function: FunctionReport) -> Iterator[str]:
    if function.head:
        yield f"{function.mark} {function.head}" if function.name else function.head
    if function.check:
        yield f"{function.check}: {function.evidence}"
    if function.also:
        yield function.also
    if function.hint:
        yield f"hint: {function.hint}"
    if function.next:
        yield f"Next: {function.next}"


def group_report(result: ExerciseResult, checks: Collection[str]) -> str:
    """A line for each check of a group, with the evidence if it failed; or that the exercise is not graded."""
    if not result.is_graded:
        return f"{said_of_not_graded(result)}\n"
    return "\n".join(_line(c) for c in result.checks if c.id in checks) + "\n"


def _line(check: CheckResult) -> str:
    mark = "✓" if check.outcome == "passed" else "✗"
    line = f"{mark} {check.title:<60} {check.score:g} / {check.max_score:g}"
    return line if check.outcome == "passed" else f"{line}\n    {check.evidence}"
