"""What of a file counts when two are held against each other: its code."""

from __future__ import annotations

import hashlib


def code_digest(source: str) -> str:
    """A hash of the code without comments and blank lines. A script and its notebook have the same."""
    lines = (line.rstrip() for line in source.splitlines())
    code = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    return hashlib.sha256(code.encode()).hexdigest()
