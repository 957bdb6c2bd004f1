"""The lines of an attempt by number, as the student knows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """The text of a file. `labels`: what each line is called where that is not its number."""

    lines: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def code(self, number: int) -> str:
        """The line without its indentation, as it may be shown; empty where there is no such line."""
        line = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        return printable(line)

    def label(self, number: int) -> str:
        """What the student calls this line."""
        return self.labels[number - 1] if 0 < number <= len(self.labels) else str(number)


def printable(text: str) -> str:
    """The text without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)
