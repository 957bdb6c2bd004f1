"""The command `course`. Each command has a file of its own and starts only what it needs."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself takes time, before Ctrl-C is heard
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # what a shell expects of a program that Ctrl-C has ended


def main() -> None:
    """Exit status: 0 done, 1 a check failed, 2 wrong usage or a fault of the grader's own, 130 ended by Ctrl-C."""
    try:
        _hear_ctrl_c()
        _write_utf8()
        status = _run()
        from contextlib import suppress

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # nobody reads on: `course … | head`
                stream.flush()
    except KeyboardInterrupt:  # also while modules are imported: whoever changed their mind wants no traceback
        status = INTERRUPTED
    os._exit(status)  # Python and torch would take a third of a second to take themselves down


def _hear_ctrl_c() -> None:
    """Where modules are being imported, Ctrl-C ends us then and there: some of them swallow what it raises."""
    import signal

    def end(number: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        children = sys.modules.get("multiprocessing")
        if frame is not None and not (children and children.active_children()):  # who would have to end them?
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored: `course … &`
        signal.signal(signal.SIGINT, end)


def _write_utf8() -> None:
    """A file or a pipe on Windows has an encoding of its own, without a ✓."""
    from io import TextIOWrapper

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


def _run() -> int:
    from ..errors import CourseFault

    try:
        from .app import app

        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except CourseFault as error:
        print(f"course: {error}", file=sys.stderr)
        return 2
    except Exception as error:  # nobody's fault but ours: a traceback, and never the status of a failed check
        import traceback

        traceback.print_exc()
        print(f"course: a fault of the grader's own: {error!r}. Next: report it with the lines above", file=sys.stderr)
        return 2
    return 0
