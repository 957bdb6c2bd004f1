"""Prove an isolation level in this box before it is claimed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..box.canary import SECONDS, CanaryReport, run_canary
from ..box.connection import AttemptEnded
from ..box.level import Box, BoxUnavailable, Level
from ..box.worker.limits import Limits
from ..box.worker.messages import Call, Load
from ..course import Course

# The proof of level `user`: an attempt of ours tries to read the course and the judge, and to write beside them.

# `reached` answers 1 for each path that can be read, then 1 for each folder that can be written to.
_SOURCE = """
import os
import torch

def readable(path):
    try:
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False

def writable(folder):
    try:
        path = os.path.join(folder, ".canary")
        open(path, "wb").close()
        os.unlink(path)
        return True
    except OSError:
        return False

def reached(paths, folders):
    flags = [*map(readable, paths.split(chr(10))), *map(writable, folders.split(chr(10)))]
    return torch.tensor(flags, dtype=torch.float64)
"""


def find_reached(box: Box, limits: Limits, root: Path, hidden: Sequence[Path] = ()) -> CanaryReport:
    """Return what an attempt in this box reaches of the course in `root`. hidden: its files that no student may see."""
    files = [*hidden, *(path for path in (root / ".course").glob("*") if path.is_file())]
    folders = sorted({root, *(path.parent for path in files)})
    judge = Path("/proc", str(os.getpid()), "environ")
    connection = box.attempt(limits)
    try:
        loaded = connection.ask(Load(_SOURCE, "reach.py"), box.start_seconds + SECONDS)
        reply = connection.ask(Call("reached", (_lines([*files, judge]), _lines(folders))), SECONDS)
    except AttemptEnded as ended:
        return CanaryReport((), f"the attempt that proves it ended early: {ended}")
    finally:
        connection.close()
    raised = loaded.raised or next(iter(loaded.stopped), None) or reply.raised
    if raised is not None or not reply.outputs or reply.outputs[0].tensor is None:
        return CanaryReport((), f"the attempt that proves it did not answer: {raised}")
    return CanaryReport(tuple(_named(reply.outputs[0].tensor.tolist(), len(files))))


def _lines(paths: Sequence[Path]) -> str:
    return "\n".join(map(str, paths))


def _named(flags: Sequence[float], files: int) -> Iterator[str]:
    """Yield a phrase for each kind of thing that was reached."""
    if any(flags[:files]):
        yield "read a file of the course"
    if flags[files]:
        yield "read the judge's environment"
    if any(flags[files + 1 :]):
        yield "wrote into the course"


# Prove an isolation level in this box before it is claimed.


def prove(box: Box, course: Course, device: str = "cpu") -> None:
    """Run the canary, if the level promises isolation. Raises BoxUnavailable, which says what leaked."""
    if box.level is Level.PROCESS:  # it promises limits and a deadline only
        return
    run = find_reached if box.level is Level.USER else run_canary
    report = run(box, course.limits.for_worker(device), course.root, course.hidden_files())
    if report.leaks:
        leaked = "; ".join(report.leaks)
        raise BoxUnavailable(
            f"level {box.level} leaks here: a canary {leaked}. Nothing was graded. Next: course doctor"
        )
    if report.error:
        raise BoxUnavailable(f"level {box.level} cannot be proved here ({report.error}). Next: course doctor")
