"""Grade a class of two, one of them hostile, and gather the evidence of what happened."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..places import REPOSITORY, environment
from ..processes import Peak
from .exercise import HONEST, HOSTILE, NEIGHBOUR, SECRET, STUDENTS, attempt_of
from .listener import Listener

if TYPE_CHECKING:
    from ..graders import Grader

SUPERVISE = REPOSITORY / "tests" / "hostile" / "supervise.py"  # kills whatever the run leaves running, and names it
SHARED_MEMORY = Path("/dev/shm")
MARK = "manyheads_bench"  # begins the name of every file that a trick leaves there


@dataclass(frozen=True)
class Evidence:
    """What is seen from outside once a class has been graded."""

    score: float | None  # the hostile student's, from the grader's own records
    neighbour: float | None
    hung: bool
    seconds: float  # until it ended, or was ended
    connected: bool  # somebody reached the listener outside
    sent_out: bool  # … and sent the hidden tests' secret
    left_running: tuple[str, ...]
    left_in_memory: int  # bytes of files in /dev/shm
    largest: int  # bytes of the largest process
    status: int = 0  # of the command; no verdict depends on it
    said: str = ""  # the end of what it printed, where it did not end well


def run(grader: Grader, trick: str, folder: Path, limit: float) -> Evidence:
    """Hand the trick in, beside an honest student; grade both; look around. `folder` is empty, or is made."""
    folder.mkdir(parents=True, exist_ok=True)
    env = environment(folder, grader.programs) | {"PYTHONDONTWRITEBYTECODE": "1"}
    grader.prepare(folder)
    report, log = folder / "left.json", folder / "log.txt"
    with Listener() as listener:
        grader.hand_in(folder, HOSTILE, attempt_of(trick, folder, listener.port))
        grader.hand_in(folder, NEIGHBOUR, {"attempt.py": HONEST})
        command = [sys.executable, "-I", str(SUPERVISE), str(limit), str(report), *grader.command(folder)]
        began = time.monotonic()
        with log.open("wb") as said:
            child = subprocess.Popen(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
            with Peak(child.pid) as peak:
                status = child.wait()
        seconds = time.monotonic() - began
    left = json.loads(report.read_text())
    scores = grader.scores(folder, STUDENTS)
    return Evidence(
        score=scores[HOSTILE],
        neighbour=scores[NEIGHBOUR],
        hung=status == 124,
        seconds=min(seconds, limit),
        connected=listener.connections > 0,
        sent_out=SECRET.encode() in listener.received,
        left_running=tuple(left),
        left_in_memory=_empty_shared_memory(),
        largest=peak.bytes,
        status=status,
        said=log.read_text("utf-8", errors="backslashreplace")[-2000:] if status else "",
    )


def _empty_shared_memory() -> int:
    size = 0
    for path in SHARED_MEMORY.glob(f"{MARK}*"):
        size += path.stat().st_size
        path.unlink()
    return size
