"""What of a reply is compared with what mutants answer."""

from __future__ import annotations

from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import Facet, ReplyFingerprint
from ..diagnosis.recording import Fingerprints


def differs(fingerprints: Fingerprints, index: int, found: ReplyFingerprint) -> bool:
    """Whether a reply to this call is another than the reference's, in what its check asks of it."""
    if index not in fingerprints.facets:  # where a check asks aspects alone no mutant is compared
        return False
    return not found.agrees(fingerprints.content.right(index), facets_of(fingerprints, index))


def facets_of(fingerprints: Fingerprints, index: int) -> tuple[Facet, ...]:
    """What is compared with mutants of a call: of a fused kernel not how it works inside.

    That depends on the processor, on PyTorch's version and on how the tensors lie in memory.
    """
    facets = fingerprints.facets[index]
    is_fused = fingerprints.content.right(index).fused
    return tuple(each for each in facets if each not in ("softmax", "square")) if is_fused else facets


def matches(fingerprints: Fingerprints, mutant: int, index: int, seen: Compared) -> bool:
    """Whether a mutant, by its number, answers this call as the attempt does; or as chance will have it."""
    known = fingerprints.content.answer(fingerprints.content.mutants[mutant], index)
    return known is None or known.agrees(seen.found, facets_of(fingerprints, index))


def is_silent(fingerprints: Fingerprints, mutant: int, index: int) -> bool:
    """Whether a mutant answers this call as the reference does; or as chance will have it."""
    content = fingerprints.content
    known = content.answer(content.mutants[mutant], index)
    return known is None or known.agrees(content.right(index), facets_of(fingerprints, index))
