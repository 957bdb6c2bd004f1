"""The command `course`. Each command has a file of its own and starts only what it needs."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

from ..errors import CourseFault
from .app import app


def main() -> None:
    """Exit status: 0 done, 1 a check failed, 2 wrong usage or a fault of the grader's own."""
    status = _run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads on: `course … | head`
            stream.flush()
    os._exit(status)  # Python and torch would take a third of a second to take themselves down


def _run() -> int:
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except CourseFault as error:
        print(f"course: {error}", file=sys.stderr)
        return 2
    except Exception as error:  # nobody's fault but ours: a traceback, and never the status of a failed check
        traceback.print_exc()
        print(f"course: a fault of the grader's own: {error!r}. Next: report it with the lines above", file=sys.stderr)
        return 2
    return 0
