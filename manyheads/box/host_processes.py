"""Watch and end the processes of a box from outside: /proc, control groups, and the reaper.

A cgroup limits the memory and processes of an attempt and its forks together; RLIMIT_AS limits each
process separately. The reaper is a separate process (see `command`). It starts bubblewrap, and ends
the box and removes the cgroup when the judge ends, even if the judge is killed. If the reaper is
killed, bubblewrap ends with it (PR_SET_PDEATHSIG). Only the standard library is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .worker.limits import MIB, Limits


def stat_of(pid: int | str) -> list[str]:
    """Return the fields of /proc/<pid>/stat that follow the process's name.

    Raises OSError if there is no such process. Source: proc(5).
    """
    fields = fields_of(Path("/proc", str(pid), "stat").read_text(errors="replace"))
    if not fields:  # the process ended while the file was read
        raise ProcessLookupError(pid)
    return fields


def fields_of(stat: str) -> list[str]:
    """Return the fields of a text from /proc/<pid>/stat that follow the process's name.

    The name ends at the last bracket, because it may itself hold brackets and blanks.
    """
    return stat.rpartition(")")[2].split()


def seconds_run(stat: str) -> float:
    """Return for how many seconds all threads of a process have run.

    Children that the process has waited for are included.

    Args:
        stat: the text of /proc/<pid>/stat.
    """
    return sum(map(int, fields_of(stat)[11:15])) / os.sysconf("SC_CLK_TCK")


def state_and_parent(pid: int | str) -> tuple[str, int]:
    """Return the state letter of a process and the id of its parent.

    Raises OSError if there is no such process.
    """
    fields = stat_of(pid)
    return fields[0], int(fields[1])


def has_ended(pid: int | str) -> bool:
    """Return whether the process has ended, even if its parent has not waited for it yet."""
    try:
        return state_and_parent(pid)[0] in "ZX"
    except OSError:
        return True


def pids() -> list[int]:
    """Return the ids of all processes that /proc shows."""
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def is_running(name: str) -> bool:
    """Return whether a process (or the main thread of one) has this name, at most 15 bytes long."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # the process ended while the file was read
            if comm.read_text(errors="replace").strip() == name:
                return True
    return False


ROOT = Path("/sys/fs/cgroup")
PREFIX = "manyheads-"
ZYGOTE_MIB = 1024  # for the warm interpreter that attempts are forked from
# The kernel counts the processes and threads of bubblewrap and the zygote with the attempt's.
ZYGOTE_PROCESSES = 8
# for the kernel to free an attempt's memory; until then it refuses to remove the cgroup
REMOVAL_SECONDS = 10.0

Plan = Mapping[str, Mapping[str, str]]  # folder -> file in it -> text to write


@dataclass(frozen=True)
class Cgroup:
    """The folders of one box's cgroup: one in version 2, one for each controller in version 1."""

    folders: tuple[Path, ...]

    def join(self) -> None:
        """Move this process into the cgroup, as far as the kernel allows that."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Remove the cgroup. Its processes must have ended.

        The kernel refuses until it has freed their memory. After REMOVAL_SECONDS, the cgroup is
        left to `remove_abandoned` of a later judge.
        """
        deadline = time.monotonic() + REMOVAL_SECONDS
        for folder in self.folders:
            while not _remove_cgroup(folder) and time.monotonic() < deadline:
                time.sleep(0.01)


def plan_cgroup(limits: Limits) -> Plan:
    """Remove abandoned cgroups of earlier judges, and return the plan of a new one.

    Args:
        limits: of each attempt. The needs of the zygote are added.
    """
    remove_abandoned()
    memory = str((limits.memory_mib + ZYGOTE_MIB) * MIB)
    pids = str(limits.processes + ZYGOTE_PROCESSES)
    name = f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    if (ROOT / "cgroup.controllers").exists():
        return {
            str(_parent_v2() / name): {
                "memory.max": memory,
                "memory.swap.max": "0",
                "pids.max": pids,
            }
        }
    return {
        str(ROOT / "memory" / name): {"memory.limit_in_bytes": memory},
        str(ROOT / "pids" / name): {"pids.max": pids},
    }


def make_cgroup(plan: Plan) -> Cgroup:
    """Make the cgroup of this plan, and return it.

    The folders that this machine does not allow are left out, so it may have none.
    """
    folders = [_make(Path(folder), settings) for folder, settings in plan.items()]
    return Cgroup(tuple(folder for folder in folders if folder is not None))


def remove_abandoned() -> None:
    """Remove the empty cgroups whose judge has ended."""
    for parent in {ROOT / "memory", ROOT / "pids", _parent_v2()}:
        for folder in parent.glob(f"{PREFIX}*"):
            if has_ended(folder.name.removeprefix(PREFIX).partition("-")[0]):
                _remove_cgroup(folder)


def _remove_cgroup(folder: Path) -> bool:
    """Remove the folder of a cgroup, and return whether it is gone.

    The kernel refuses while the cgroup has a process.
    """
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _make(folder: Path, settings: Mapping[str, str]) -> Path | None:
    """Make the folder of a cgroup with these settings, and return it.

    Settings that this kernel lacks are skipped. Returns None, and leaves no folder, if the folder
    cannot be made or no setting can be written.
    """
    try:
        folder.mkdir()
    except OSError:
        return None
    written = 0
    for file, value in settings.items():
        with contextlib.suppress(OSError):
            (folder / file).write_text(value)
            written += 1
    if not written:
        folder.rmdir()
        return None
    return folder


def _parent_v2() -> Path:
    """Return the folder of the cgroup (version 2) in which to make others.

    For root, this is the root cgroup, in which the limits on memory and processes are switched on.
    For other users, it is the cgroup of this process, which systemd may have delegated to them.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        return ROOT
    cgroup_path = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
    return ROOT / cgroup_path.lstrip("/")


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STAGES = ("/mnt", "/media", "/srv", "/run", "/tmp")
_LIFELINE = 0  # standard input


def command(request: Mapping[str, object]) -> list[str]:
    """Return the command line of a reaper, which starts bwrap and ends all processes of the box.

    Args:
        request: `bwrap` (its path), `arguments` (for bwrap, with "{n}" for the n-th source),
            `command` (to run in the box), `sources` (paths), `uid` (None if not root) and `cgroups`
            (a plan).
    """
    root = str(Path(__file__).parents[2])
    code = (
        f"import sys; sys.path.append({root!r}); "
        "from manyheads.box.host_processes import main; main()"
    )
    return [sys.executable, "-I", "-S", "-B", "-c", code, json.dumps(request)]


def main() -> None:
    """Run the reaper: start a box, and return when all its processes and its cgroup are gone.

    The request is in `sys.argv[1]`; see `command`. The box ends by itself, or is ended when the
    other end of standard input closes, which happens at the latest when the judge ends.
    """
    from .worker.confine import libc  # needs Linux, and Windows imports this module, too

    request = json.loads(sys.argv[1])
    os.setsid()
    # When bubblewrap ends, the processes of the box become children of this process.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    cgroup = make_cgroup(request["cgroups"])
    reaper = os.getpid()
    box = os.fork()
    if box == 0:
        cgroup.join()
        # The box must not keep the judge's pipe open.
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, _LIFELINE)
        os.close(null)
        _become_box(request, reaper)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the judge decides
        signal.signal(number, signal.SIG_IGN)
    # Only the box may keep the control socket open: the judge sees by it that the box has ended.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    poll = select.poll()  # until the box or the judge has ended, or the judge has closed the box
    poll.register(_LIFELINE, select.POLLIN)
    poll.register(os.pidfd_open(box), select.POLLIN)
    poll.poll()
    _end_children()
    cgroup.remove()


def _become_box(request: dict[str, Any], parent: int) -> NoReturn:
    """Replace this process by bubblewrap, with the uid of the request.

    Args:
        request: see `command`.
        parent: the id of the reaper, with which this process ends.
    """
    from .worker.confine import libc  # imported by main already, before the uid changes

    sources: list[str] = request["sources"]
    if request["uid"] is not None:
        sources = _stage(sources)
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    # after the change of the uid, which would undo this setting
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the reaper ended before the line above
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
    """Bind-mount every source below one folder that everybody may enter, and return the new paths.

    They are mounted in a new mount namespace of this process. Root may read a source in a folder
    that the box's uid may not enter.
    """
    from .worker.confine import BIND, NEW_NS, PRIVATE, RECURSIVE, bind, check, libc, mount

    stage = next(s for s in _STAGES if os.path.isdir(s) and not _holds_a_source(s, sources))
    check(libc.unshare(NEW_NS), "unshare")
    mount("none", "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", stage, "tmpfs", 0, "size=1m,mode=0755")
    staged = [f"{stage}/{i}" for i in range(len(sources))]
    for source, target in zip(sources, staged, strict=True):
        bind(source, target, BIND | RECURSIVE)
    return staged


def _holds_a_source(folder: str, sources: list[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for path in sources)


def _end_children() -> None:
    """Kill the children of this process until there are none.

    The children of a process that ends become children of this process. So no process of the box is
    left at the end.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in pids():
                with contextlib.suppress(OSError):  # the process has ended
                    if state_and_parent(pid)[1] == os.getpid():
                        os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
