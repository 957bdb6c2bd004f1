"""Describe an exception of a student's code to the student, on the student's own machine."""

from __future__ import annotations

from ..box.worker.answers import Raised
from ..checks.explain import explain, says_unwritten
from ..checks.sanitize import sanitize


def describe_exception(raised: Raised) -> str:
    """One sentence with the exception's message. On a student's own machine the message reveals nothing hidden."""
    says_nothing = says_unwritten(raised) or raised.type == "SystemExit"  # whose message is a number, or None
    own = "" if says_nothing else sanitize(raised.message)
    return f"{explain(raised)}. Python says: {own}" if own else explain(raised)
