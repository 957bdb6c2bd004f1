"""Prove an isolation level in this box before it is claimed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ..box.canary import SECONDS, CanaryReport, run_canary
from ..box.connection import AttemptEnded, Box, End
from ..box.level import BoxUnavailable, Level
from ..box.worker.limits import Limits
from ..box.worker.messages import Call, Load
from ..course import Course

# The canary of level `user`. It tries to read files of the course and of the judge, and to write
# into their folders. Files and folders are passed one a line. `reached` returns a number for each
# file, then for each folder: 1 if it can be read, or written to.
_SOURCE = """
import os
import torch

def readable(path):
    with open(path, "rb") as file:
        return bool(file.read(1))

def writable(folder):
    path = os.path.join(folder, ".canary")
    open(path, "wb").close()
    os.unlink(path)
    return True

def can(act, path):
    try:
        return act(path)
    except OSError:
        return False

def reached(paths, folders):
    flags = [can(readable, path) for path in paths.split(chr(10))]
    flags += [can(writable, folder) for folder in folders.split(chr(10))]
    return torch.tensor(flags, dtype=torch.float64)
"""


def prove(box: Box, course: Course, device: str = "cpu") -> None:
    """Prove that this box isolates attempts as its level promises, by running a canary in it.

    Raises BoxUnavailable if anything leaks, or if the canary does not answer.
    """
    if box.level is Level.PROCESS:  # this level promises limits and a deadline only
        return
    run = _run_user_canary if box.level is Level.USER else run_canary
    report = run(box, course.limits.for_worker(device), course.root, course.hidden_files())
    if report.leaks:
        problem = f"leaks here: a canary {'; '.join(report.leaks)}. Nothing was graded"
    elif report.error:
        problem = f"cannot be proved here ({report.error})"
    else:
        return
    # a reply that cannot be read shows a fault of the engine, and not of the machine
    next_step = "make check" if report.end is End.BAD_REPLY else "course doctor"
    raise BoxUnavailable(f"level {box.level} {problem}. Next: {next_step}")


def _run_user_canary(box: Box, limits: Limits, root: Path, hidden: Sequence[Path]) -> CanaryReport:
    """Return which files and folders an attempt in a box of level `user` can reach.

    These are the hidden files of the course, its folder .course, and the judge's environment.

    Args:
        box: The box.
        limits: The limits of the attempt.
        root: The course's folder.
        hidden: The files of the course that no student may see.
    """
    files = [*hidden, *(path for path in (root / ".course").glob("*") if path.is_file())]
    folders = sorted({root, *(path.parent for path in files)})
    paths = [*files, Path("/proc", str(os.getpid()), "environ")]
    call = Call("reached", ("\n".join(map(str, paths)), "\n".join(map(str, folders))))
    try:
        with closing(box.attempt(limits)) as connection:
            loaded = connection.ask(Load(_SOURCE, "reach.py"), SECONDS)
            reply = connection.ask(call, SECONDS)
    except AttemptEnded as ended:
        return CanaryReport((), f"the attempt that proves it ended early: {ended}", ended.end)
    raised = loaded.raised or next(iter(loaded.stopped), None) or reply.raised
    if raised is not None or not reply.outputs or reply.outputs[0].tensor is None:
        return CanaryReport((), f"the attempt that proves it did not answer: {raised}")
    flags = reply.outputs[0].tensor.tolist()
    leaks = {
        "read a file of the course": flags[: len(files)],
        "read the judge's environment": flags[len(files) : len(paths)],
        "wrote into the course": flags[len(paths) :],
    }
    return CanaryReport(tuple(phrase for phrase, reached in leaks.items() if any(reached)))
