"""What a command costs: the whole process, from its start to its end, with all that it starts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..meter import Meter, busy_seconds


class NotMeasured(Exception):
    """A command failed, or graded wrongly: its time would say nothing. The text says what came of it."""


@dataclass(frozen=True)
class Cost:
    """Seconds. `cpu` leaves out attempts in our box where no control group can be made; `beside` is then None."""

    wall: float
    cpu: float
    beside: float | None = None  # how many cores other programs kept busy meanwhile

    def each(self, count: int) -> Cost:
        """Of one among so many."""
        return replace(self, wall=self.wall / count, cpu=self.cpu / count)


class Running:
    """A command that is running in a folder, with its own environment."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        """Start it."""
        self._log, self._command, self._meter = folder / "log.txt", command, Meter()
        self._busy, self._began = busy_seconds(), time.perf_counter()
        with self._log.open("wb") as said:
            self._child = subprocess.Popen(
                self._meter.command(command),
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._child.pid

    def cpu(self) -> float:
        """CPU seconds so far."""
        return self._meter.seconds(self.pid)

    def wait(self) -> Cost:
        """Its cost, once it has ended. Raises NotMeasured where it failed."""
        with self._meter:
            _, status, usage = os.wait4(self.pid, 0)
            wall = time.perf_counter() - self._began
            self._child.returncode = os.waitstatus_to_exitcode(status)
            if self._child.returncode:
                said = self._log.read_text("utf-8", errors="backslashreplace")[-2000:]
                raise NotMeasured(f"{list(self._command)} ended with {self._child.returncode}:\n{said}")
            if not self._meter.complete:
                return Cost(wall, usage.ru_utime + usage.ru_stime)
            cpu = self.cpu()
            return Cost(wall, cpu, max(0.0, busy_seconds() - self._busy - cpu) / wall)
