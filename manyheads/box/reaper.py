"""Start a box and stay beside it, so that nothing of it is left when its judge ends, however that
ends.

A judge that is killed can tidy up nothing. The reaper can: it stands outside the box and its
cgroup, in a session of its own, which no signal to the judge's process group reaches. Its standard
input is a pipe whose other end only the judge holds. At its end the reaper kills the box, waits
until the last process of it is gone, and removes the cgroup, which it has made itself: there is no
moment at which a cgroup exists and nobody is there to remove it. If the reaper is killed,
bubblewrap ends with it (PR_SET_PDEATHSIG), and the judge removes the cgroup.

The box starts in a child. Bubblewrap run by root is not a sandbox, so root drops to a uid that owns
nothing, before any student code exists. That uid may be unable to reach the interpreter (for
example in a virtual environment below /root). Root therefore first bind-mounts the box's contents
to a folder that everybody can enter, in a mount namespace that ends with this process.

Runs as a process of its own; see `command`. Imports the standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from .cgroup import make_cgroup
from .procstat import pids, state_and_parent
from .worker.confine import BIND, NEW_NS, PRIVATE, RECURSIVE, bind, check, libc, mount

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STAGES = ("/mnt", "/media", "/srv", "/run", "/tmp")
_LIFELINE = 0  # standard input


def command(request: Mapping[str, object]) -> list[str]:
    """Return the command line of a reaper for this request.

    It has `bwrap` (path), `arguments` (for bwrap, with "{n}" for the n-th source), `command` (what
    to run in the box), `sources` (paths), `uid` (or None, when not root) and `cgroups` (a plan).
    """
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.append({root!r}); from manyheads.box.reaper import main; main()"
    return [sys.executable, "-I", "-S", "-B", "-c", code, json.dumps(request)]


def main() -> None:
    """Start the box, and return when it and its cgroup are gone."""
    request = json.loads(sys.argv[1])
    os.setsid()
    # the box's processes become ours when bubblewrap ends
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    cgroup = make_cgroup(request["cgroups"])
    reaper = os.getpid()
    box = os.fork()
    if box == 0:
        cgroup.join()
        # it lets go of the judge's pipe
        os.dup2(null := os.open(os.devnull, os.O_RDONLY), _LIFELINE)
        os.close(null)
        _become_box(request, reaper)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the judge decides
        signal.signal(number, signal.SIG_IGN)
    # the judge sees that the box ended by the end of the control socket
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    poll = select.poll()  # until the box or the judge has ended, or the judge has closed the box
    poll.register(_LIFELINE, select.POLLIN)
    poll.register(os.pidfd_open(box), select.POLLIN)
    poll.poll()
    _end_children()
    cgroup.remove()


def _become_box(request: dict[str, Any], parent: int) -> NoReturn:
    sources: list[str] = request["sources"]
    if request["uid"] is not None:
        sources = _stage(sources)
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the uid, whose change undoes it
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
    arguments = [a.format(*sources) if a.startswith("{") else a for a in request["arguments"]]
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    if os.fork() == 0:  # a child writes the arguments, which may be longer than the pipe's buffer
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(b"".join(a.encode() + b"\0" for a in arguments))
        os._exit(0)
    os.close(writer)
    os.execv(request["bwrap"], ["bwrap", "--args", str(reader), "--", *request["command"]])


def _stage(sources: list[str]) -> list[str]:
    """Bind-mount every source below one folder that everybody may enter. Returns the new paths."""
    stage = next(
        s
        for s in _STAGES
        if os.path.isdir(s) and not any(p == s or p.startswith(s + "/") for p in sources)
    )
    check(libc.unshare(NEW_NS), "unshare")
    mount("none", "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", stage, "tmpfs", 0, "size=1m,mode=0755")
    staged = [f"{stage}/{i}" for i in range(len(sources))]
    for source, target in zip(sources, staged, strict=True):
        bind(source, target, BIND | RECURSIVE)
    return staged


def _end_children() -> None:
    """Kill what is left of the box, until the last process is gone.

    Who ends leaves its children to this process.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in pids():
                with contextlib.suppress(OSError):  # it has ended
                    if state_and_parent(pid)[1] == os.getpid():
                        os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
