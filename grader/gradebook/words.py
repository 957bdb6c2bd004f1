"""A result's words, as plain text for a gradebook's comment or a cell's output."""

from __future__ import annotations

from collections.abc import Collection

from ..result import CheckResult, ExerciseResult


def comment(result: ExerciseResult, isolation: str) -> str:
    """What a student reads about an attempt: the first failure, the diagnosis, a hint."""
    failed = [c for c in result.checks if c.outcome != "passed"]
    if not failed:
        return f"All checks passed. (isolation: {isolation})"
    lines = [f"{failed[0].title}: {failed[0].evidence}"]
    for named in result.diagnosis:
        same = f" (the same numbers come from: {', '.join(named.alternatives)})" if named.alternatives else ""
        lines.append(f"{named.title}{same} hint: {named.hint}")
    if not result.diagnosis and failed[0].hint:
        lines.append(f"hint: {failed[0].hint}")
    return "\n".join([*lines, f"(isolation: {isolation})"])


def group_report(result: ExerciseResult, checks: Collection[str]) -> str:
    """A line for each check of a group, and what was seen where it failed."""
    return "\n".join(_line(c) for c in result.checks if c.id in checks) + "\n"


def _line(check: CheckResult) -> str:
    mark = "✓" if check.outcome == "passed" else "✗"
    line = f"{mark} {check.title:<60} {check.score:g} / {check.max_score:g}"
    return line if check.outcome == "passed" else f"{line}\n    {check.evidence}"
