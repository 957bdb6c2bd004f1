"""What a student's own code raised, in a sentence for the student alone."""

from __future__ import annotations

from ..box.worker.answers import Raised
from ..checks.explain import explain
from ..checks.sanitize import sanitize


def describe_exception(raised: Raised) -> str:
    """With Python's own words: which name, which sizes. On a student's own machine they give nothing away."""
    own = "" if raised.type == "NotImplementedError" else sanitize(raised.message)
    return f"{explain(raised)}. Python says: {own}" if own else explain(raised)
