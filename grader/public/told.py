"""What a student's own code raised, in a sentence for the student alone."""

from __future__ import annotations

from ..box.worker.answers import Raised
from ..judge.explain import explain
from ..judge.plain import plain


def told(raised: Raised) -> str:
    """With Python's own words: which name, which sizes. On a student's own machine they give nothing away."""
    own = "" if raised.type == "NotImplementedError" else plain(raised.message)
    return f"{explain(raised)}. Python says: {own}" if own else explain(raised)
