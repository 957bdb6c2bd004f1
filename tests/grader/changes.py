"""Attempts at the real course that differ from the reference in a line or two."""

from __future__ import annotations

from manyheads.course import Exercise
from manyheads.lines.find_lines import Bounds
from tests.make import edited

NO_SEARCH = Bounds(seconds=0.0)  # for the line, which takes longer than all else

Changes = dict[str, str]  # what stands in the reference, and what stands there instead


def changed(exercise: Exercise, changes: Changes) -> str:
    """The reference's text, with these changes, each of which must find its place."""
    return edited(exercise.solution.read_text(encoding="utf-8"), *changes.items())
