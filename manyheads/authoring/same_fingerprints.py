"""Compare a fingerprint file on disk with a new one, as a student's machine reads it: each mutant's answer to each call.

Of a mutant that rounds its answers to a decimal, chance decides whether a change of the inputs as small as a rounding error shows
in an answer of float32 (`chance.is_of_rounding`): one processor records it, and another one leaves it out.
"""

from __future__ import annotations

from dataclasses import replace

from safetensors import SafetensorError

from ..public.file import Content, Fingerprints, loaded, save
from .recordings import in_step

MOST_UNDECIDED = 0.001  # of all answers, those that only one of the two files has


def same_fingerprints(there: bytes, made: bytes) -> bool:
    """Whether two fingerprint files are equivalent. False where `there` cannot be read."""
    if there == made:
        return True
    try:
        before = loaded(there)
    except (ValueError, LookupError, TypeError, SafetensorError):
        return False
    after = loaded(made)
    return in_step(_without_answers(before), _without_answers(after)) and _same_answers(before.content, after.content)


def _without_answers(fingerprints: Fingerprints) -> bytes:
    return save(replace(fingerprints, content=fingerprints.content.model_copy(update={"replies": (), "mutants": ()})))


def _same_answers(before: Content, after: Content) -> bool:
    """Whether the reference and all mutants answer alike, however answers that are the same to rounding are stored."""
    if len(before.replies) != len(after.replies) or [m.id for m in before.mutants] != [m.id for m in after.mutants]:
        return False
    right = {(i, 0, 0) for i in range(len(before.replies))}
    places = [
        (i, *both)
        for old, new in zip(before.mutants, after.mutants, strict=True)
        for i, both in enumerate(zip(old.answers, new.answers, strict=True))
    ]
    known = right | {(i, a, b) for i, a, b in places if a is not None and b is not None}
    undecided = sum((a is None) != (b is None) for _, a, b in places)
    return undecided <= MOST_UNDECIDED * len(places) and all(
        before.replies[i][a].is_same(after.replies[i][b]) for i, a, b in known
    )
