"""What git leaves in a file whose two versions it could not merge."""

from __future__ import annotations

_MARKERS = ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> ")


def conflict_line(text: str) -> int | None:
    """The line at which the first conflict begins, from 1 on; None if there is none."""
    text, at, first = f"\n{text}", -1, None
    for marker in _MARKERS:
        at = text.find(marker, at + 1)
        if at < 0:
            return None
        first = at if first is None else first
    return text.count("\n", 0, first) + 1
