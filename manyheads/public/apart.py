"""Two mistakes of which one changes the numbers, and the other only how they come about: a gradient that is cut, an argument
that is changed, a fixed dtype. Neither answers as both do, but each explains its part.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import ReplyFingerprint
from ..diagnosis.recording import Fingerprints
from .facets import facets_of

Structure = tuple[object, ...]


def explaining_apart(
    fingerprints: Fingerprints, differing: Mapping[int, Compared], asked: Set[int]
) -> tuple[int, int] | None:
    """Two mutants, by their numbers: the first has the attempt's numbers, the second all else of its answers; or None.

    asked: the calls that are compared, on which the attempt answers as the reference where they are not `differing`.
    """
    content, calls = fingerprints.content, sorted(asked)
    found = {i: differing[i].found if i in differing else content.right(i) for i in calls}
    known = [{i: answer for i in calls if (answer := content.answer(m, i)) is not None} for m in content.mutants]
    right = {i: content.right(i) for i in calls}
    calm = [m for m, each in enumerate(known) if _has_numbers_of(each, right)]
    firsts = [m for m, each in enumerate(known) if m not in calm and _has_numbers_of(each, found)]
    for second in calm:
        if _has_all_else_of(fingerprints, known[second], found, right):
            for first in firsts:
                if content.mutants[first].id != content.mutants[second].id:
                    return first, second
    return None


def _has_numbers_of(known: Mapping[int, ReplyFingerprint], found: Mapping[int, ReplyFingerprint]) -> bool:
    """Whether a mutant returns these numbers, wherever both return something; and that is most calls."""
    both = [i for i, each in known.items() if not each.raised and not found[i].raised]
    return 2 * len(both) > len(found) and all(known[i].agrees(found[i], ("outputs",)) for i in both)


def _has_all_else_of(
    fingerprints: Fingerprints,
    known: Mapping[int, ReplyFingerprint],
    found: Mapping[int, ReplyFingerprint],
    right: Mapping[int, ReplyFingerprint],
) -> bool:
    """Whether a mutant's answers are like these in all but numbers, and somewhere unlike the reference's."""
    mine, theirs, best = ([_structure(fingerprints, i, of[i]) for i in known] for of in (known, found, right))
    return mine == theirs != best


def _structure(fingerprints: Fingerprints, index: int, reply: ReplyFingerprint) -> Structure:
    """What of a reply is compared, but for its numbers."""
    if reply.raised:
        return (reply.raised,)
    facets = [f for f in facets_of(fingerprints, index) if f not in ("outputs", "gradients", "argument_gradients")]
    cut = frozenset(name for name, gradient in reply.gradients.items() if gradient is None)
    return (cut, *(repr(getattr(reply, facet)) for facet in facets))
