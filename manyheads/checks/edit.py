"""A mutant as an edit of the reference: replace a text by another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class EditError(ValueError):
    """The text that an edit replaces does not occur exactly once."""


@dataclass(frozen=True)
class Edit:
    """changes: each text of the reference that is replaced, and its replacement."""

    changes: Mapping[str, str]

    def apply(self, source: str) -> str:
        """Return the edited source. Raises EditError if a text does not occur exactly once."""
        for old, new in self.changes.items():
            if (count := source.count(old)) != 1:
                raise EditError(f"{old!r} occurs {count} times, and an edit needs it exactly once")
            source = source.replace(old, new)
        return source


def edit(old: str, new: str, more: Mapping[str, str] | None = None) -> Edit:
    """Return an edit of the reference, for MUTANTS.

    Example: `("scale_missing", edit("/ math.sqrt(head_dim)", ""))`

    Args:
        old: a text of the solution file, with its blanks. It must occur exactly once.
        new: its replacement in the mutant.
        more: further replacements of the same fault.
    """
    return Edit({old: new, **(more or {})})
