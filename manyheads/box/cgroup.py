"""A control group for one box, where this machine allows it: bounds memory and processes of an
attempt and its forks.

RLIMIT_AS bounds each process by itself; only a cgroup bounds all of them together.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .procstat import has_ended
from .worker.limits import MIB, Limits

ROOT = Path("/sys/fs/cgroup")
PREFIX = "manyheads-"
ZYGOTE_MIB = 1024  # for the warm interpreter that attempts are forked from
ZYGOTE_PROCESSES = 8
# for the kernel to free an attempt's memory, after which it lets go of the cgroup
REMOVAL_SECONDS = 10.0

Plan = Mapping[str, Mapping[str, str]]  # folders to make, and what to write to the files of each


@dataclass(frozen=True)
class Cgroup:
    """The folders of one box's cgroup: one in version 2, one for each controller in version 1."""

    folders: tuple[Path, ...]

    def join(self) -> None:
        """Move this process into the cgroup."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Remove the cgroup.

        Its processes must have ended; the kernel may need a moment to notice.
        """
        deadline = time.monotonic() + REMOVAL_SECONDS
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < deadline:
                time.sleep(0.01)


def plan_cgroup(limits: Limits) -> Plan:
    """Return the cgroup that a box with these limits should have.

    What earlier judges left is removed first.
    """
    remove_abandoned()
    memory, pids = (
        str((limits.memory_mib + ZYGOTE_MIB) * MIB),
        str(limits.processes + ZYGOTE_PROCESSES),
    )
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
    """Make a cgroup. It has no folders if this machine does not allow one."""
    folders = [_make(Path(folder), settings) for folder, settings in plan.items()]
    return Cgroup(tuple(folder for folder in folders if folder is not None))


def remove_abandoned() -> None:
    """Remove the empty cgroups whose judge has ended."""
    for parent in {ROOT / "memory", ROOT / "pids", _parent_v2()}:
        for folder in parent.glob(f"{PREFIX}*"):
            if has_ended(folder.name.removeprefix(PREFIX).partition("-")[0]):
                _removed(folder)


def _removed(folder: Path) -> bool:
    """Remove the folder, and return whether it is gone.

    The kernel refuses while a process is left in it.
    """
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _make(folder: Path, settings: Mapping[str, str]) -> Path | None:
    """Make the folder with these settings; None if that fails.

    Settings that this kernel lacks are skipped.
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
    """For root, the root cgroup; for others their own cgroup, which systemd may have delegated to
    them.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        return ROOT
    cgroup_path = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
    return ROOT / cgroup_path.lstrip("/")
