"""Run a command and tell what it leaves running. A script: supervise.py SECONDS REPORT COMMAND…

Whatever loses its parent becomes a child of this process, so that nothing can hide by forking twice. Once the command
has ended, its descendants get a minute to be reaped; the names of those that remain are written to REPORT.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
SECONDS = 60.0  # a busy machine is slow


def main() -> None:
    """Exit as the command does, or with 124 where it does not end in time."""
    seconds, report, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        status = process.wait(float(seconds))
    except subprocess.TimeoutExpired:
        status = 124
    until = time.monotonic() + SECONDS
    while (left := children()) and time.monotonic() < until:
        time.sleep(0.02)
    Path(report).write_text(json.dumps(sorted(left.values())))
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    sys.exit(status)


def children() -> dict[int, str]:
    """The names of this process's children. Those that have ended are gone."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid): Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}


if __name__ == "__main__":
    main()
