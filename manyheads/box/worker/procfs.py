"""The part of /proc that a GPU's driver reads. An attempt on the CPU gets an empty /proc.

CUDA starts only if it may write `/proc/self/task/<tid>/comm` (driver 570 and newer fail with error 304 otherwise). The
other paths are those that libcuda.so.1 contains and those that libnvidia-container mounts. An attempt sees only itself, in
a procfs of its own PID namespace: not even the processes that it starts.
"""

from __future__ import annotations

import contextlib
import os

from . import mounts
from .mounts import BIND, MOVE, NO_DEV, NO_EXEC, NO_SUID, PRIVATE, READ_ONLY, RECURSIVE, REMOUNT

OWN = "1"  # an attempt is PID 1 of its namespace
_READ = (
    "cpuinfo", "meminfo", "devices", "modules", "sys/vm/mmap_min_addr", "sys/vm/overcommit_memory",
    "driver/nvidia/version", "driver/nvidia/registry", "driver/nvidia/gpus", "driver/nvidia/capabilities",
    "driver/nvidia-uvm", "driver/nvidia-caps",
)  # fmt: skip
_PARAMETERS = "driver/nvidia/params"
_QUIET = NO_SUID | NO_DEV | NO_EXEC
_NEW_NS = 0x00020000


def mount_reduced_proc() -> bool:
    """Mount it over /proc. Returns False if this kernel does not allow that.

    Call it in PID 1 of a PID namespace, with CAP_SYS_ADMIN in the user namespace that made it: before the attempt enters a
    user namespace of its own, in which these mounts are locked.
    """
    mounts.check(mounts.libc.unshare(_NEW_NS), "unshare")
    mounts.mount("none", "/", None, RECURSIVE | PRIVATE)
    mounts.mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, "size=1m,mode=0700")
    os.makedirs("/tmp/own")
    os.makedirs("/tmp/proc")
    try:
        mounts.mount("proc", "/tmp/own", "proc", _QUIET)
        mounts.mount("tmpfs", "/tmp/proc", "tmpfs", _QUIET, "size=64k,nr_inodes=64,mode=0755")
        _fill("/tmp/proc", "/tmp/own")
        mounts.mount("none", "/tmp/proc", None, REMOUNT | BIND | READ_ONLY | _QUIET)
        mounts.unmount("/tmp/own")  # the bind mounts from it stay
        mounts.mount("/tmp/proc", "/proc", None, MOVE)
    except OSError:
        return False
    return True


def _fill(folder: str, own: str) -> None:
    _bind(f"{own}/{OWN}", f"{folder}/{OWN}")
    os.symlink(OWN, f"{folder}/self")
    for name in _READ:
        with contextlib.suppress(OSError):  # not every kernel and driver has all of them
            _bind(f"/proc/{name}", f"{folder}/{name}")
            mounts.mount("none", f"{folder}/{name}", None, REMOUNT | BIND | READ_ONLY | _QUIET)
    with contextlib.suppress(OSError):
        with open(f"/proc/{_PARAMETERS}") as file:
            text = file.read()
        with open(f"{folder}/{_PARAMETERS}", "w") as file:  # the driver must not try to change device files
            file.write(text.replace("ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0"))


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target)
    else:
        os.stat(source)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").close()
    mounts.mount(source, target, None, BIND)
