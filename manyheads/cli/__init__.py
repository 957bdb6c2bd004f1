"""The command `course`, with one module for each group of commands.

Input: the command line, course.yaml, and the files that a command names. Output: text on the
terminal, files, and an exit status. The steps, in order:

1. `main` handles Ctrl-C and the encoding of the streams, and runs `app`, which has all commands.
2. Each command reads its arguments with `options`, and calls the package that does the work. A
   command imports slow modules, such as torch, only when it runs, so that `course --help` is quick.
3. `report` turns results into text, and the command prints it through the console of `options`.
4. `main` turns an exception into one sentence on stderr, and ends the process with the status.

For example, `course check 01` runs `check.check`, which prints the result of one attempt, and ends
with status 1 if a check failed. The commands are in `check`, `student`, `collect`, `grade`,
`results`, `overrides`, `author` and `ci`; `language_server` serves an editor. Commands for
instructors make their class with `class_of_results`, and print its state with `class_sentences`.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # importing typing takes time, and Ctrl-C is not handled before
if TYPE_CHECKING:
    from types import FrameType

# the exit statuses that shells expect after Ctrl-C and SIGPIPE
INTERRUPTED = 130
NOBODY_READS = 141


def main() -> None:
    """Run the command, and end the process with an exit status.

    0: done. 1: a check failed. 2: wrong usage, or a fault of the grader. 130: Ctrl-C. 141: SIGPIPE.
    """
    try:
        _handle_ctrl_c()
        if sys.stderr is None:  # closed before the start, as by `course … 2>&-`
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        # on Windows, files and pipes have another encoding, which lacks ✓
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # names of files may be no text
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        if sys.stdout is None:  # as by `course … >&-`: then nothing is done
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            status = _say(
                "course: standard output is closed. "
                "Next: the same command, with its output to a file or to /dev/null"
            )
        else:
            status = _flush_streams(_run())
    except KeyboardInterrupt:  # no traceback after Ctrl-C, also while modules are imported
        status = INTERRUPTED
    os._exit(status)  # a normal exit of Python and torch takes a third of a second


def _handle_ctrl_c() -> None:
    """End the process at Ctrl-C even if KeyboardInterrupt is swallowed.

    Some modules swallow it during their import, and Python swallows it in a `__del__`.
    """
    import signal

    def end(number: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        children = sys.modules.get("multiprocessing")
        # children have to be ended first
        if frame is not None and not (children and children.active_children()):
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    def end_later(lost: sys.UnraisableHookArgs) -> None:
        # raised in a __del__, as dask has them: nobody can catch it
        if isinstance(lost.exc_value, KeyboardInterrupt):
            from threading import Timer  # here, for the start has no time for it

            Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = end_later
    # not if it is ignored: `course … &`
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def _flush_streams(status: int) -> int:
    """Flush both streams, and return the exit status.

    The status becomes 2 if standard output cannot be written, and 141 if its reader is gone.
    Otherwise `status` is returned.
    """
    from contextlib import suppress

    if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # click's, after EPIPE
        status = NOBODY_READS
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = NOBODY_READS
    except OSError as error:
        problem = f"course: standard output cannot be written ({error.strerror or error})"
        status = _say(f"{problem}. Next: the same command, with its output to a file")
    with suppress(OSError):
        sys.stderr.flush()
    return status


def _run() -> int:
    """Run the command of the command line, and return its exit status.

    For a fault of the course, a package that is missing, or a file that this machine does not let
    us read or write, print one sentence. For any other exception, print its traceback.
    """
    from ..files import CourseFault

    try:
        from .app import app

        app()
    except SystemExit as ended:
        if ended.code is None:
            return 0
        return ended.code if isinstance(ended.code, int) else 1
    except CourseFault as error:
        return _say(f"course: {error}")
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", __package__.partition(".")[0]):
            return _fault(error)
        return _say(
            f"course: this Python ({sys.executable}) has no {name}, which course needs and make "
            "check installs. Next: make check"
        )
    except OSError as error:
        next_step = _next_after(error)
        if next_step is None:
            return _fault(error)
        path = error.filename2 or error.filename or "standard output"
        return _say(f"course: {path}: {error.strerror}: {next_step}")
    except Exception as error:
        return _fault(error)
    return 0


def _next_after(error: OSError) -> str | None:
    """Return the advice for a file that this machine does not let us read or write.

    Return None for other errors, which may be faults of the grader.
    """
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            "make room there, and run the same command again: what is written is whole. "
            "Next: df -h ."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "let this user read and write there, or name another place. Next: id"
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP):
        return "move it elsewhere, or name another place. Next: ls -l"
    return None


def _say(sentence: str) -> int:
    """Print a sentence to stderr, and return 2, the exit status of wrong usage."""
    try:
        from .options import open_console
    except ImportError:  # a package that make check installs is missing
        print(sentence, file=sys.stderr)
    else:
        open_console(stderr=True).tell(sentence)
    return 2


def _fault(error: Exception) -> int:
    """Print the traceback of a fault of the grader, and return the exit status 2.

    A failed check has the status 1.
    """
    import traceback

    traceback.print_exception(error)
    print(
        f"course: a fault of the grader's own: {error!r}. Next: report it with the lines above",
        file=sys.stderr,
    )
    return 2
