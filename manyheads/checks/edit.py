"""A wrong attempt as an edit of the reference: this text becomes that text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class EditError(ValueError):
    """A text does not stand exactly once where an edit looks for it."""


@dataclass(frozen=True)
class Edit:
    """changes: what stands in the reference, and what stands there instead."""

    changes: Mapping[str, str]

    def apply(self, source: str) -> str:
        """The edited source. Raises EditError where a text is not found exactly once."""
        for old, new in self.changes.items():
            if (count := source.count(old)) != 1:
                raise EditError(f"{old!r} stands there {count} times, and an edit needs it exactly once")
            source = source.replace(old, new)
        return source


def edit(old: str, new: str, more: Mapping[str, str] | None = None) -> Edit:
    """An edit of the reference, for MUTANTS: `("scale_missing", edit("/ math.sqrt(head_dim)", ""))`.

    Args:
        old: text of the solution file, with its blanks; it must stand there exactly once.
        new: what stands there in the mutant.
        more: further changes of the same fault.
    """
    return Edit({old: new, **(more or {})})
