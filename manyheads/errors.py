"""Errors whose text is written for the person at the terminal."""

from __future__ import annotations

from shlex import quote


class CourseFault(Exception):
    """Wrong usage, or a fault of the grader. The text says what is wrong and which command to run next."""


def restore(path: object, released_by: str = "an instructor") -> str:
    """Return what is to be done next where a file that a release writes is missing or damaged."""
    return f"As {released_by}, make it with course release. Next: git checkout {quote(str(path))}"
