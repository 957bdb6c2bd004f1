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

# For level `user`. This attempt tries to read files of the course and of the judge, and to write
# beside them. `reached` answers 1 for each path that it can read, then 1 for each folder that it
# can write to.
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
    asked = [(readable, path) for path in paths.split(chr(10))] + [(writable, path) for path in \
folders.split(chr(10))]
    return torch.tensor([can(*each) for each in asked], dtype=torch.float64)
"""


def prove(box: Box, course: Course, device: str = "cpu") -> None:
    """Run the canary if the level promises isolation.

    Raises BoxUnavailable if anything leaks, or if the canary does not answer.
    """
    if box.level is Level.PROCESS:  # this level promises limits and a deadline only
        return
    run = _find_reached if box.level is Level.USER else run_canary
    report = run(box, course.limits.for_worker(device), course.root, course.hidden_files())
    leaks = f"leaks here: a canary {'; '.join(report.leaks)}. Nothing was graded"
    problem = leaks if report.leaks else f"cannot be proved here ({report.error})"
    # the machine is not the cause
    next_step = "make check" if report.end is End.BAD_REPLY else "course doctor"
    if report.leaks or report.error:
        raise BoxUnavailable(f"level {box.level} {problem}. Next: {next_step}")


def _find_reached(box: Box, limits: Limits, root: Path, hidden: Sequence[Path]) -> CanaryReport:
    """Return which files and folders of the course an attempt in this box can reach.

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
            loaded, reply = (
                connection.ask(message, SECONDS) for message in (Load(_SOURCE, "reach.py"), call)
            )
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
