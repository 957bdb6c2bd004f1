"""What a run that was killed has left on this machine: earlier versions of the engine left judges, boxes and cgroups."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from .cgroup import abandoned, remove_abandoned
from .procstat import pids, state_and_parent

_BOX = "manyheads_worker"  # in the command line of bubblewrap, of the zygote and of attempts
_PARTS = (_BOX, "multiprocessing.spawn", "manyheads.box.reaper", "manyheads/box/launcher.py")  # of a judge and its box
_SECONDS = 2.0  # for a reaper that is at work just now


@dataclass(frozen=True)
class Leftovers:
    """Processes that nobody waits for, each with the box below it, and cgroups whose judge has ended."""

    processes: tuple[int, ...]
    cgroups: tuple[Path, ...]

    @property
    def command(self) -> str:
        """The command that removes them."""
        places = [*(Path(f"/proc/{pid}") for pid in self.processes), *self.cgroups]
        sudo = "" if all(map(_is_ours, places)) else "sudo "
        commands = [f"{sudo}kill -9 {' '.join(map(str, self.processes))}"] if self.processes else []
        commands += [f"{sudo}rmdir {' '.join(map(str, self.cgroups))}"] if self.cgroups else []
        return " && sleep 1 && ".join(commands)


def find_leftovers() -> Leftovers:
    """Look for them. Removes empty cgroups that this process may remove. Mounts end with the processes that see them."""
    deadline = time.monotonic() + _SECONDS
    while True:
        remove_abandoned()
        tops = {_top(pid) for pid in pids() if _BOX in _command_line(pid)} - {0}
        left = Leftovers(tuple(sorted(tops)), tuple(abandoned()))
        if not (left.processes or left.cgroups) or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _top(pid: int) -> int:
    """Return the judge or the box that this process belongs to, if whoever started it has gone; else 0.

    A judge is started by Python: the command, or a dask worker. When that is gone, init or a service manager adopts it.
    """
    while _is_part(parent := _parent(pid)):
        pid = parent
    return pid if _is_python(parent) is False else 0


def _is_part(pid: int) -> bool:
    line = _command_line(pid)
    return any(part in line for part in _PARTS)


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return state_and_parent(pid)[1]
    return 0


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def _is_python(pid: int) -> bool | None:
    """Return whether the process runs Python. None where that cannot be known: it has ended, or is somebody else's."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy"))
    except OSError:
        return False if pid == 1 else None


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.geteuid() in (0, path.stat().st_uid)
    return True
