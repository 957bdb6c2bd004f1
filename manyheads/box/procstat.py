"""What /proc says of any process of this machine.

Imports the standard library only, for the reaper.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def stat_of(pid: int | str) -> list[str]:
    """Return the fields of a process's status that follow its name.

    Raises OSError if there is no process. Source: proc(5).
    """
    fields = fields_of(Path("/proc", str(pid), "stat").read_text(errors="replace"))
    if not fields:  # it ended while it was read
        raise ProcessLookupError(pid)
    return fields


def fields_of(stat: str) -> list[str]:
    """Return the fields that follow a process's name, which may hold anything."""
    return stat.rpartition(")")[2].split()


def ran(stat: str) -> float:
    """Return the seconds that all threads of a process have run, and all children that it has
    waited for.
    """
    return sum(map(int, fields_of(stat)[11:15])) / os.sysconf("SC_CLK_TCK")


def state_and_parent(pid: int | str) -> tuple[str, int]:
    """Return the state letter and the parent of a process. Raises OSError if there is none."""
    fields = stat_of(pid)
    return fields[0], int(fields[1])


def has_ended(pid: int | str) -> bool:
    """Return whether the process has ended, even if nobody has waited for it yet."""
    try:
        return state_and_parent(pid)[0] in "ZX"
    except OSError:
        return True


def pids() -> list[int]:
    """Return all processes that /proc shows."""
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def is_running(name: str) -> bool:
    """Return whether a process (or the main thread of one) has this name, at most 15 bytes long."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it ended while it was read
            if comm.read_text(errors="replace").strip() == name:
                return True
    return False
