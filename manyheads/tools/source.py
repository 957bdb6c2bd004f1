"""The lines of an attempt by number."""

from __future__ import annotations

from dataclasses import dataclass

from ..submission.text import printable


@dataclass(frozen=True)
class Source:
    """The text of a file. `labels`: what each line is called, if it is not called by its number."""

    lines: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def code(self, number: int) -> str:
        """The line without its indentation, safe to show; empty if there is no such line."""
        line = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        return printable(line)

    def label(self, number: int) -> str:
        """What this line is called."""
        return self.labels[number - 1] if 0 < number <= len(self.labels) else str(number)
