"""All edits of an attempt that are worth trying, likely and cheap ones first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from . import calls, gates, names, numbers, operators, statements, swaps
from .part import Part, parts_of
from .text import Edit

LONGEST_LINES, LONGEST = 400, 20_000  # the longest text that is edited: lines and characters
MOST = 4000  # edits that are made of one text: more are not tried
MOST_BYTES = (
    4000 * 20_000
)  # of all edits, each of which is a whole text: one emoji in it makes each character four bytes
NEAR = 2  # by how many tiers an edit is tried sooner that stands on the line of an exception
_FAMILIES: tuple[Callable[[Part], Iterator[Edit]], ...] = (
    gates.edits,
    operators.edits,
    calls.edits,
    swaps.edits,
    numbers.edits,
    names.edits,
    statements.edits,
)


def candidates(source: str, targets: Collection[str], raised_on: Collection[int] = ()) -> list[Edit]:
    """The edits of what calls of these functions and classes reach, each text once.

    raised_on: the lines of exceptions that ended failed calls. Empty for a text that is too long or cannot be parsed.
    """
    if len(source) > LONGEST or source.count("\n") >= LONGEST_LINES:
        return []
    found: dict[str, Edit] = {}
    try:
        for edit in islice(_edits(source, targets), min(MOST, MOST_BYTES // sys.getsizeof(source))):
            if edit.line and (edit.after not in found or edit.tier < found[edit.after].tier):
                found[edit.after] = edit
    except RecursionError:  # an expression of a thousand brackets
        return []
    near = set(raised_on)
    return sorted(found.values(), key=lambda e: (e.tier - NEAR * (e.line in near), e.line))


def _edits(source: str, targets: Collection[str]) -> Iterator[Edit]:
    for part in parts_of(source, targets):
        for family in _FAMILIES:
            yield from family(part)
