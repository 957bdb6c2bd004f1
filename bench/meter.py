"""CPU time of a command and of all that it starts, in seconds.

An attempt in our box is a process that nobody waits for, so the kernel adds its time to nobody's children: only a
control group counts it. Where none can be made, what is waited for is all there is, and `complete` says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from .processes import TICKS, cpu_seconds

USED = re.compile(r"^usage_usec (\d+)", re.MULTILINE)


class Meter:
    """Use as a context manager around one command."""

    def __init__(self) -> None:
        """Make the control group, where this machine lets us."""
        self._group = _group()
        self._last = 0.0

    @property
    def complete(self) -> bool:
        """Whether processes that nobody waits for are counted as well."""
        return self._group is not None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command as it must be started, to be counted from its first instruction."""
        if self._group is None:
            return list(command)
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._group / "cgroup.procs"), *command]

    def seconds(self, pid: int) -> float:
        """So far. `pid`: the command. Once it has ended and been waited for, what was last seen."""
        self._last = max(self._last, cpu_seconds(pid) if self._group is None else _used(self._group))
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        for _ in range(500):  # the last attempt may still be on its way out
            with contextlib.suppress(OSError):
                if self._group is not None:
                    self._group.rmdir()
                break
            time.sleep(0.01)


def busy_seconds() -> float:
    """CPU time of all programs since this machine started."""
    user, nice, system = Path("/proc/stat").read_text().split(None, 4)[1:4]
    return (int(user) + int(nice) + int(system)) / TICKS


def _used(group: Path) -> float:
    with contextlib.suppress(OSError):
        if used := USED.search((group / "cpu.stat").read_text()):
            return int(used[1]) / 1e6
    return 0.0


def _group() -> Path | None:
    """A control group of version 2 below our own. As root on version 2 alone a box leaves it for one of its own: none."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    kinds = {kind: Path(place) for _, place, kind, *_ in mounts if kind.startswith("cgroup")}
    if "cgroup2" not in kinds or (os.geteuid() == 0 and "cgroup" not in kinds):
        return None
    own = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    group = kinds["cgroup2"] / (own[1] if own else "") / f"bench-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError:
        return None
    return group
