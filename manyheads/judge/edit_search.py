"""Search for the edit after which every check passes: the edited line is the wrong one.

Rules propose edits for each node of the syntax tree; likely and cheap edits come first. The search
has limits of counts and of time. If the time runs out, the search reports no line, so a slow
machine may find less, but never another line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice, product

from ..result import MOST_LINES
from ..submission.source import Source
from .parts_reached_by_calls import LineEdit, parts_of
from .single_edits import RULES

# the longest code that is edited, not counting lines of comments
MAX_LINES, MAX_CHARACTERS = 400, 20_000
# characters of code in all edited texts together: each is loaded, and there is no time for more
MAX_LOADED_CHARACTERS = 20_000_000
MAX_EDITS = 4000  # of one text
# bytes of all edited texts: in a text with an emoji, each character takes four bytes
MAX_BYTES = MAX_EDITS * MAX_CHARACTERS
TIERS_SOONER = 2  # An edit on the line of an exception is tried this many tiers sooner.


def candidates(
    source: Source, targets: Collection[str], raised_on: Collection[int] = ()
) -> list[LineEdit]:
    """Return edits of the code that may run in calls of the targets, likely ones first.

    Edits are sorted by tier, and then by line. For the order, an edit on a line of `raised_on`
    counts as TIERS_SOONER tiers lower. If several edits give the same text, only the one with the
    lowest tier is returned. The list is empty if the text cannot be parsed, or if the code or all
    edited texts together are too long.

    Args:
        source: The attempt's text.
        targets: The names of the functions and classes that are called. If the text defines none of
            these, all its functions and classes count as called.
        raised_on: The lines of exceptions that ended failed calls.
    """
    code = [line for line in source.text.split("\n") if not line.lstrip().startswith("#")]
    length = sum(map(len, code))
    if len(code) > MAX_LINES or length > MAX_CHARACTERS:
        return []
    max_edits = min(MAX_EDITS, MAX_BYTES // sys.getsizeof(source.text))
    edits: dict[str, LineEdit] = {}  # by the edited text
    for edit in islice(_edits(source, targets), max_edits):
        if not edit.line:  # it changes nothing
            continue
        text = edit.after.text
        if text not in edits or edit.tier < edits[text].tier:
            edits[text] = edit

    def tier_and_line(edit: LineEdit) -> tuple[int, int]:
        tier = edit.tier - TIERS_SOONER if edit.line in raised_on else edit.tier
        return tier, edit.line

    sorted_edits = sorted(edits.values(), key=tier_and_line)
    return sorted_edits if len(sorted_edits) * length <= MAX_LOADED_CHARACTERS else []


def _edits(source: Source, targets: Collection[str]) -> Iterator[LineEdit]:
    """Yield the edits of all rules, part by part. Some edits change nothing."""
    for code in parts_of(source, targets):
        for rule, node in product(RULES, code.nodes):
            yield from (code.edit(*change) for change in rule(code, node))


BATCH = 16  # the edits that are screened together


class OutOfTime(Exception):
    """The time for a search is over, or an edited attempt did not answer in time."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a search.

    Attributes:
        edits: The most edits that are tried.
        proofs: The most edits that are tested with every check.
        seconds: The most time that the whole search may take.
    """

    edits: int = 1500
    proofs: int = 10
    seconds: float = 2.0


def find_lines(
    edits: Sequence[LineEdit],
    screen: Callable[[Sequence[Source]], list[bool]],
    passes: Callable[[Source], bool],
    bounds: Bounds,
) -> tuple[LineEdit, ...]:
    """Return an edit for each proved line, in the order of lines.

    After the first proof, only edits of the same category on other lines are tried. The result is
    empty if no line is proved, or more than MOST_LINES are. It is also empty if more than
    `bounds.proofs` edits are worth a proof, because the others may be as good.

    Args:
        edits: The edits, likely ones first.
        screen: Returns for each edited attempt whether it is worth a proof: a quick test with some
            of the failed calls.
        passes: Returns whether an edited attempt passes every check, in a process that has run
            nothing else.
        bounds: The limits. `screen` and `passes` watch the time, and raise OutOfTime.
    """
    proved: dict[int, LineEdit] = {}  # by line
    proof_count = 0

    def may_be_proved(edit: LineEdit) -> bool:
        is_same_category = all(p.category == edit.category for p in proved.values())
        return edit.line not in proved and is_same_category

    edits = edits[: bounds.edits]
    for start in range(0, len(edits), BATCH):
        batch = [*filter(may_be_proved, edits[start : start + BATCH])]
        promising = compress(batch, screen([edit.after for edit in batch]))
        # Tested once more for each edit, because a proof may rule out the rest of its batch.
        for edit in filter(may_be_proved, promising):
            proof_count += 1
            if proof_count > bounds.proofs:
                return ()
            if passes(edit.after):
                proved[edit.line] = edit
            if len(proved) > MOST_LINES:
                return ()
    return tuple(proved[line] for line in sorted(proved))
