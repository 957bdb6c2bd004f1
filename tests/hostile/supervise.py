"""Run a command and tell what it leaves running. A script: supervise.py SECONDS REPORT COMMAND…

Whatever loses its parent becomes a child of this process, so that nothing can hide by forking twice. Once the command
has ended, its descendants get ten seconds to be reaped; the names of those that remain are written to REPORT.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Exit as the command does, or with 124 where it does not end in time."""
    seconds, report, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        status = process.wait(float(seconds))
    except subprocess.TimeoutExpired:
        status = 124
    deadline = time.monotonic() + 60  # a busy machine is slow
    while (left := descendants()) and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.02)
    Path(report).write_text(json.dumps(sorted(left.values())))
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    sys.exit(status)


def descendants() -> dict[int, str]:
    """The names of all processes below this one."""
    parents, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                head, _, tail = (folder / "stat").read_text().rpartition(")")
                parents[int(folder.name)] = int(tail.split()[1])
                names[int(folder.name)] = head.partition("(")[2]
    found: dict[int, str] = {}
    todo = [os.getpid()]
    while todo:
        parent = todo.pop()
        for pid, of in parents.items():
            if of == parent and pid not in found:
                found[pid] = names[pid]
                todo.append(pid)
    return found


if __name__ == "__main__":
    main()
