"""The command `course`. Each command has a file of its own and starts only what it needs."""

from __future__ import annotations

import sys
import traceback

from ..errors import CourseFault
from .app import app


def main() -> None:
    """Exit status: 0 done, 1 a check failed, 2 wrong usage or a fault of the grader's own."""
    try:
        app()
    except CourseFault as error:
        print(f"course: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:  # nobody's fault but ours: a traceback, and never the status of a failed check
        traceback.print_exc()
        print(f"course: a fault of the grader's own: {error!r}. Next: report it with the lines above", file=sys.stderr)
        sys.exit(2)
