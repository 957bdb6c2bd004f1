"""Start a box and stay beside it, so that nothing of it is left when its judge ends, however that ends.

A judge that is killed can tidy up nothing. The reaper can: it stands outside the box and its cgroup, in a session of its
own, which no signal to the judge's process group reaches. Its standard input is a pipe whose other end only the judge
holds. At its end the reaper kills the box, waits until the last process of it is gone, and removes the cgroup, which it
has made itself: there is no moment at which a cgroup exists and nobody is there to remove it. If the reaper is killed,
bubblewrap ends with it (PR_SET_PDEATHSIG), and the judge removes the cgroup.

Runs as a process of its own; see `command`. Imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from .cgroup import make_cgroup
from .launcher import become_box
from .procstat import pids, state_and_parent

_PR_SET_CHILD_SUBREAPER = 36
_LIFELINE = 0  # standard input


def command(request: Mapping[str, object]) -> list[str]:
    """Return the command line of a reaper for this request: what `launcher.py` asks, and `cgroups`, a plan."""
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.append({root!r}); from manyheads.box.reaper import main; main()"
    return [sys.executable, "-I", "-S", "-B", "-c", code, json.dumps(request)]


def main() -> None:
    """Start the box, and return when it and its cgroup are gone."""
    request = json.loads(sys.argv[1])
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the box's processes become ours when bubblewrap ends
    cgroup = make_cgroup(request["cgroups"])
    reaper = os.getpid()
    box = os.fork()
    if box == 0:
        cgroup.join()
        _read_nothing()
        become_box(request, reaper)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the judge decides
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the judge sees that the box ended by the end of the control socket
    _wait_for_either(box)
    _end_children()
    cgroup.remove()


def _read_nothing() -> None:
    """Let go of the judge's pipe."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, _LIFELINE)
    os.close(null)


def _wait_for_either(box: int) -> None:
    """Wait until the box or the judge has ended, or the judge has closed the box."""
    poll = select.poll()
    poll.register(_LIFELINE, select.POLLIN)
    poll.register(os.pidfd_open(box), select.POLLIN)
    poll.poll()


def _end_children() -> None:
    """Kill what is left of the box, until the last process is gone. Who ends leaves its children to this process."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in _children():
                os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> Iterator[int]:
    """Yield the children of this process, also those that have ended and were not waited for."""
    for pid in pids():
        with contextlib.suppress(OSError):
            if state_and_parent(pid)[1] == os.getpid():
                yield pid
