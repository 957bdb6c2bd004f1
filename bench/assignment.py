"""What is handed in and how it is checked, for graders that run the checks beside the attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Assignment:
    """One file or notebook to hand in. Every check is a few statements over the names of `functions`, and a point."""

    name: str
    functions: tuple[str, ...]
    setup: str  # imports, and what the checks compare with
    checks: Mapping[str, str]

    @property
    def points(self) -> int:
        """The most that can be earned."""
        return len(self.checks)
