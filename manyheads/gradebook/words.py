"""A result as plain text, for a gradebook's comment or a cell's output."""

from __future__ import annotations

from collections.abc import Collection

from ..report.words import where_wrong
from ..result import CheckResult, ExerciseResult

_INDENT = "    "  # four blanks: nbgrader renders comments as Markdown, in which this is literal text


def comment(result: ExerciseResult, isolation: str) -> str:
    """The comment on an attempt: the first failure, the diagnosis, a hint."""
    failed = [c for c in result.checks if c.outcome != "passed"]
    lines = [result.note] if result.note else []
    if not failed:
        lines.append("All checks passed.")
    else:
        lines.append(f"{failed[0].title}: {failed[0].evidence}")
    if where := where_wrong(result):
        lines.append(where)
    for named in result.diagnosis:
        same = f" (the same numbers come from: {', '.join(named.alternatives)})" if named.alternatives else ""
        lines += [f"{named.title}{same}", f"hint: {named.hint}"]
    if failed and not result.diagnosis and failed[0].hint:
        lines.append(f"hint: {failed[0].hint}")
    lines.append(f"(isolation: {isolation})")
    return "\n".join(_INDENT + line for text in lines for line in text.splitlines())


def group_report(result: ExerciseResult, checks: Collection[str]) -> str:
    """A line for each check of a group, with the evidence if it failed."""
    return "\n".join(_line(c) for c in result.checks if c.id in checks) + "\n"


def _line(check: CheckResult) -> str:
    mark = "✓" if check.outcome == "passed" else "✗"
    line = f"{mark} {check.title:<60} {check.score:g} / {check.max_score:g}"
    return line if check.outcome == "passed" else f"{line}\n    {check.evidence}"
