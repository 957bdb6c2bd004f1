"""One recorded call: how the reference answered it, and how an attempt did."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from .fingerprint import ReplyFingerprint, fingerprint_beside

Expected = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Observed:
    """One recorded call: how the reference answered it, and how an attempt did.

    expected: the reference's output; of a call that returns several, each of the first run. None: an output without numbers.
    """

    call: Call
    right: ReplyFingerprint
    expected: Expected
    reply: Reply
    found: ReplyFingerprint


def observed(call: Call, right: ReplyFingerprint, expected: Expected, reply: Reply) -> Observed:
    """Return a reply beside what is recorded of the reference's."""
    return Observed(call, right, expected, reply, fingerprint_beside(right, call, reply))


def first_of(expected: Expected) -> Tensor | None:
    """Return the first output, to which a relation of several calls is put."""
    return expected[0] if expected else None
