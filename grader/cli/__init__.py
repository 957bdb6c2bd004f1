"""The command `course`. Each command has a file of its own and starts only what it needs."""

from __future__ import annotations

import sys

from ..errors import CourseFault
from .app import app


def main() -> None:
    """Exit status: 0 done, 1 a check failed, 2 wrong usage or a fault of the grader's own."""
    try:
        app()
    except CourseFault as error:
        print(f"course: {error}", file=sys.stderr)
        sys.exit(2)
