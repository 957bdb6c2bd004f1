"""The command `course`. Each subcommand has its own file and imports only what it needs."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes time, and Ctrl-C is not handled before
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # the exit status that shells expect after Ctrl-C


def main() -> None:
    """Run the command. Exit status: 0 done, 1 a check failed, 2 wrong usage or a fault of the grader, 130 Ctrl-C."""
    try:
        _handle_ctrl_c()
        _write_utf8()
        status = _run()
        from contextlib import suppress

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the reader has closed the pipe: `course … | head`
                stream.flush()
    except KeyboardInterrupt:  # no traceback after Ctrl-C, also while modules are imported
        status = INTERRUPTED
    os._exit(status)  # a normal exit of Python and torch takes a third of a second


def _handle_ctrl_c() -> None:
    """End the process at Ctrl-C while modules are imported, because some modules swallow KeyboardInterrupt."""
    import signal

    def end(number: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        children = sys.modules.get("multiprocessing")
        if frame is not None and not (children and children.active_children()):  # children have to be ended first
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if it is ignored: `course … &`
        signal.signal(signal.SIGINT, end)


def _write_utf8() -> None:
    """Write UTF-8. On Windows, files and pipes have another encoding, which lacks ✓."""
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
        _say(f"course: {error}")
        return 2
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", __package__.partition(".")[0]):
            return _fault(error)
        said = f"this Python ({sys.executable}) has no {name}, which course needs"
        _say(f"course: {said}. Next: make check, which installs it, then .venv/bin/course")
        return 2
    except Exception as error:
        return _fault(error)
    return 0


def _say(sentences: str) -> None:
    """Print them to stderr. A terminal would end its lines within a word. What is to be done next begins a line, so that its
    command can be copied whole where it fits one.
    """
    if sys.stderr.isatty():
        from shutil import get_terminal_size
        from textwrap import fill

        wide = max(get_terminal_size().columns, 20)
        lines = [line if len(line) <= wide else line.replace(" Next: ", "\nNext: ") for line in sentences.splitlines()]
        parts = [part for line in lines for part in line.splitlines()]
        sentences = "\n".join(fill(part, wide, break_long_words=False, break_on_hyphens=False) for part in parts)
    print(sentences, file=sys.stderr)


def _fault(error: Exception) -> int:
    """Show the traceback of a fault of the grader's own, and do not exit with the status of a failed check."""
    import traceback

    traceback.print_exception(error)
    print(f"course: a fault of the grader's own: {error!r}. Next: report it with the lines above", file=sys.stderr)
    return 2
