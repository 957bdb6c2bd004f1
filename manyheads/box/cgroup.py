"""A control group for one box, where this machine allows it: bounds memory and processes of an attempt and its forks.

RLIMIT_AS bounds each process by itself; only a cgroup bounds all of them together.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from .worker.limits import MIB, Limits

ROOT = Path("/sys/fs/cgroup")
PREFIX = "manyheads-"
ZYGOTE_MIB = 1024  # for the warm interpreter that attempts are forked from
ZYGOTE_PROCESSES = 8


@dataclass(frozen=True)
class Cgroup:
    """The folders of one box's cgroup: one in version 2, one for each controller in version 1."""

    folders: tuple[Path, ...]

    @property
    def entrances(self) -> list[str]:
        """The files to which a process writes its pid to join."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def remove(self) -> None:
        """Remove the cgroup. Its processes must have ended; the kernel may need a moment to notice."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)


def make_cgroup(limits: Limits) -> Cgroup:
    """Make a cgroup with these limits. It has no folders if this machine does not allow one."""
    _remove_stale()
    memory, pids = str((limits.memory_mib + ZYGOTE_MIB) * MIB), str(limits.processes + ZYGOTE_PROCESSES)
    name = f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    if (ROOT / "cgroup.controllers").exists():
        folder = _make(_parent_v2() / name, {"memory.max": memory, "memory.swap.max": "0", "pids.max": pids})
        return Cgroup(() if folder is None else (folder,))
    made = (
        _make(ROOT / "memory" / name, {"memory.limit_in_bytes": memory}),
        _make(ROOT / "pids" / name, {"pids.max": pids}),
    )
    return Cgroup(tuple(folder for folder in made if folder is not None))


def _remove_stale() -> None:
    """Remove the cgroups of judges that were killed. The kernel refuses where a process is left."""
    for parent in {ROOT / "memory", ROOT / "pids", _parent_v2()}:
        for folder in parent.glob(f"{PREFIX}*"):
            if not Path("/proc", folder.name.removeprefix(PREFIX).partition("-")[0]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _make(folder: Path, settings: dict[str, str]) -> Path | None:
    """Make the folder with these settings; None if that fails. Settings that this kernel lacks are skipped."""
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
    """For root, the root cgroup; for others their own cgroup, which systemd may have delegated to them."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        return ROOT
    own = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
    return ROOT / own.lstrip("/")
