"""One recorded call: how the reference answered it, and how an attempt did."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from .fingerprint import ReplyFingerprint, fingerprint_beside


@dataclass(frozen=True)
class Compared:
    """One recorded call: how the reference answered it, and how an attempt did.

    expected: the reference's first output, None where it has none.
    """

    call: Call
    right: ReplyFingerprint
    expected: Tensor | None
    reply: Reply
    found: ReplyFingerprint


def compared(call: Call, right: ReplyFingerprint, expected: Tensor | None, reply: Reply) -> Compared:
    """A reply beside what is recorded of the reference's."""
    return Compared(call, right, expected, reply, fingerprint_beside(right, call, reply))
