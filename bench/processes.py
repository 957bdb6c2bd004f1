"""A run's processes, seen from outside: whoever hides in a namespace still stands in our /proc."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

MOST_HELD = re.compile(r"^VmHWM:\s+(\d+)", re.MULTILINE)
TICKS = os.sysconf("SC_CLK_TCK")  # a second
PARENT, TIMES = (
    1,
    slice(11, 15),
)  # of /proc/<pid>/stat after the name: user and system, its own and of children waited for


class Watcher:
    """While the block runs, `look` is called every so many seconds, in a thread."""

    def __init__(self, pid: int, every: float) -> None:
        """For a process and what descends from it."""
        self.pid, self._every = pid, every
        self._over = threading.Event()

    def look(self) -> None:
        """Take note of what is to be seen now."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            self.look()


class Peak(Watcher):
    """`held`: the most that each process has held, in bytes. The kernel keeps the peak: the last look at each counts."""

    def __init__(self, pid: int, every: float = 0.05) -> None:
        super().__init__(pid, every)
        self.held: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """The most that one of them has held."""
        return max(self.held.values(), default=0)

    def look(self) -> None:
        """Read every process's own record."""
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                found = MOST_HELD.search(Path(f"/proc/{pid}/status").read_text())
                self.held[pid] = max(self.held.get(pid, 0), int(found[1]) * 1024 if found else 0)


def cpu_seconds(pid: int) -> float:
    """CPU time so far of a process, of all below it, and of all below it that have ended and were waited for."""
    return sum(int(ticks) for fields in _family(pid).values() for ticks in fields[TIMES]) / TICKS


def _family(ancestor: int) -> dict[int, list[str]]:
    """What /proc/<pid>/stat says after the name, for this process and all below it."""
    every: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            every[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()

    def is_below(pid: int) -> bool:
        while pid in every and pid != ancestor:
            pid = int(every[pid][PARENT])
        return pid == ancestor

    return {pid: fields for pid, fields in every.items() if is_below(pid)}
