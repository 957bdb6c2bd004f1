"""A mutant as an edit of the reference: replace a text by another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_SOLUTIONS = re.compile(r"### BEGIN SOLUTION.*?### END SOLUTION", re.DOTALL)


class EditError(ValueError):
    """The text that an edit replaces does not occur exactly once."""


@dataclass(frozen=True)
class Edit:
    """changes: each text of the reference that is replaced, and its replacement."""

    changes: Mapping[str, str]

    def apply(self, source: str) -> str:
        """Return the edited source. Raises EditError if a text occurs exactly once neither there
        nor between the solution's marks.
        """
        for old, new in self.changes.items():
            offset = _offset(source, old)
            source = source[:offset] + new + source[offset + len(old) :]
        return source


def _offset(source: str, old: str) -> int:
    """Return where the text stands. A text of the lesson may have it, too: then the one between the
    solution's marks counts.
    """
    spans = [(0, len(source)), *(match.span() for match in _SOLUTIONS.finditer(source))]
    counts = [source.count(old, *span) for span in spans]
    if counts[0] == 1:
        return source.index(old)
    if sum(counts[1:]) == 1:
        return source.index(old, *spans[1 + counts[1:].index(1)])
    raise EditError(f"{old!r} occurs {counts[0]} times, and an edit needs it exactly once")


def edit(old: str, new: str, more_changes: Mapping[str, str] | None = None) -> Edit:
    """Return an edit of the reference, for MUTANTS.

    Example: `("scale_missing", edit("/ math.sqrt(head_dim)", ""))`

    Args:
        old: a text of the solution file, with its blanks. It must occur exactly once, in the file
            or between the solution's marks.
        new: its replacement in the mutant.
        more_changes: further replacements of the same fault.
    """
    return Edit({old: new, **(more_changes or {})})
