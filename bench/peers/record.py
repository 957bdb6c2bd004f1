"""What is said while a measurement runs, and what stands beneath its table."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

from .cost import Cost
from .spread import spread

QUIET = 0.1  # cores


class Record:
    """Every cost is told to it as it comes."""

    def __init__(self) -> None:
        """Nothing has been measured yet."""
        self._beside: list[float] = []

    def note(self, name: str, cost: Cost) -> None:
        """Print a cost."""
        print(f"{name}: {cost.wall:.4f} s, {cost.cpu:.4f} s CPU", file=sys.stderr, flush=True)
        if cost.beside is not None:
            self._beside.append(cost.beside)

    def beneath(self, command: str) -> str:
        """Return with which command, when and on what it was measured; say on stderr where the machine was not quiet."""
        if self._beside and spread(self._beside).middle > QUIET:
            print("The machine was not quiet: measure again before you quote this.", file=sys.stderr)
        return f"`{command}`, {date.today():%B %Y}, {_machine()}."


def _machine() -> str:
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    versions = f"Python {platform.python_version()}, torch {version('torch').partition('+')[0]}"
    return f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), {system}, {versions}"
