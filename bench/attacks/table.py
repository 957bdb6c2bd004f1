"""One Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(rows: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str:
    """A row for each attack, a column for each grader."""
    lines = [["attack", *columns], ["---"] * (len(columns) + 1)]
    lines += [[row, *cells] for row, *cells in zip(rows, *columns.values(), strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
