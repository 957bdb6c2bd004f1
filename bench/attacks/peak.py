"""The largest process of a run, seen from outside: whoever hides in a namespace still stands in our /proc."""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from types import TracebackType

EVERY = 0.05  # seconds
FIELD = re.compile(r"^(PPid|VmHWM):\s+(\d+)", re.MULTILINE)


class Peak:
    """While the block runs, `bytes` is the most that one process below `pid` has held at once."""

    def __init__(self, pid: int) -> None:
        """Watch what descends from this process."""
        self.bytes = 0
        self._pid = pid
        self._over = threading.Event()

    def __enter__(self) -> Peak:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            parents, sizes = {}, {}
            for folder in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    found = {name: int(value) for name, value in FIELD.findall((folder / "status").read_text())}
                    parents[int(folder.name)] = found["PPid"]
                    sizes[int(folder.name)] = found.get("VmHWM", 0) * 1024
            self.bytes = max([self.bytes, *(size for pid, size in sizes.items() if _is_below(pid, self._pid, parents))])


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor
