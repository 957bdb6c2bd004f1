"""What an exception proves by itself."""

from __future__ import annotations

from ..box.worker.answers import Raised
from ..checks.explain import kind_of

MUTATED = "input_mutated"


def proven_by(raised: Raised | None, mutates: bool) -> str:
    """The misconception that an exception proves by itself, or "".

    mutates: whether an argument was seen to change. Autograd's complaint of a change in place may be of another tensor.
    """
    kind = kind_of(raised) if raised is not None else None
    name = (kind.misconception if kind else None) or ""
    return "" if name == MUTATED and not mutates else name
