"""Confine one attempt inside the box, in steps.

The zygote calls `seal_devices` once, and `PidNamespaces.prepare_next` before each fork, because a
PID namespace holds the children of the process that made it. The attempt's own process calls
`enter_namespaces` and `drop_privileges`, right before student code. Source: unshare(2),
user_namespaces(7), capabilities(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct

from . import seccomp
from .limits import CUDA, Limits, apply_rlimits

READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, MOVE, RECURSIVE, PRIVATE = (
    1,
    2,
    4,
    8,
    0x20,
    0x1000,
    0x2000,
    0x4000,
    1 << 18,
)
NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def mount(
    source: str, target: str, filesystem: str | None, flags: int, options: str | None = None
) -> None:
    """Mount a file system, with the arguments of the system call mount. Raises OSError."""
    arguments = [None if a is None else a.encode() for a in (source, target, filesystem)]
    data = None if options is None else options.encode()
    check(libc.mount(*arguments, ctypes.c_ulong(flags), data), f"mount on {target}")


def check(result: int, operation: str) -> None:
    """Raise OSError with the C library's errno unless the result of a call is 0."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


OWN = "1"  # an attempt is PID 1 of its namespace
_READ = (
    "cpuinfo",
    "meminfo",
    "devices",
    "modules",
    "sys/vm/mmap_min_addr",
    "sys/vm/overcommit_memory",
    "driver/nvidia/version",
    "driver/nvidia/registry",
    "driver/nvidia/gpus",
    "driver/nvidia/capabilities",
    "driver/nvidia-uvm",
    "driver/nvidia-caps",
)
_PARAMETERS = "driver/nvidia/params"
_QUIET = NO_SUID | NO_DEV | NO_EXEC


def mount_reduced_proc() -> bool:
    """Mount over /proc the part of procfs that a GPU's driver reads, and return True.

    Returns False if this kernel does not allow these mounts; /proc is then as before. Raises
    OSError if not even a mount namespace with a new /tmp can be made.

    CUDA starts only if it may write `/proc/self/task/<tid>/comm` (driver 570 and newer fail with
    error 304 otherwise). The other paths are those that libcuda.so.1 contains and those that
    libnvidia-container mounts. In this /proc, an attempt sees only itself, not even the processes
    that it starts.

    Call this function in PID 1 of a PID namespace, with CAP_SYS_ADMIN in the user namespace that
    made the PID namespace. The attempt must not have entered its own user namespace yet: these
    mounts are locked there, so that it cannot undo them.
    """
    check(libc.unshare(NEW_NS), "unshare")
    mount("none", "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, "size=1m,mode=0700")
    os.makedirs("/tmp/own")
    os.makedirs("/tmp/proc")
    try:
        mount("proc", "/tmp/own", "proc", _QUIET)
        mount("tmpfs", "/tmp/proc", "tmpfs", _QUIET, "size=64k,nr_inodes=64,mode=0755")
        _fill("/tmp/proc", "/tmp/own")
        mount("none", "/tmp/proc", None, REMOUNT | BIND | READ_ONLY | _QUIET)
        check(libc.umount2(b"/tmp/own", _DETACH), "umount")  # the bind mounts from it stay
        mount("/tmp/proc", "/proc", None, MOVE)
    except OSError:
        return False
    return True


def _fill(folder: str, procfs: str) -> None:
    """Bind the paths that the driver needs into the folder; skip those that do not exist.

    The attempt's own entry comes from `procfs` and can be written. The others come from /proc and
    are read-only.
    """
    bind(f"{procfs}/{OWN}", f"{folder}/{OWN}")
    os.symlink(OWN, f"{folder}/self")
    for name in _READ:
        with contextlib.suppress(OSError):  # some kernels and drivers lack some of these paths
            bind(f"/proc/{name}", f"{folder}/{name}")
            mount("none", f"{folder}/{name}", None, REMOUNT | BIND | READ_ONLY | _QUIET)
    with contextlib.suppress(OSError):
        with open(f"/proc/{_PARAMETERS}") as file:
            text = file.read()
        # the driver must not try to change device files
        with open(f"{folder}/{_PARAMETERS}", "w") as file:
            file.write(text.replace("ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0"))


def bind(source: str, target: str, flags: int = BIND) -> None:
    """Create the target, and bind-mount the source on it. Raises OSError."""
    if os.path.isdir(source):
        os.makedirs(target)
    else:
        os.stat(source)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").close()
    mount(source, target, None, flags)


_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR = 4, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 40


def seal_devices() -> None:
    """Mount each device file read-only, for all attempts.

    Data can still be written to the device, but the times of the file cannot be set. Otherwise an
    attempt could hide a note in these times for a later run, because everybody may set the times of
    a file that everybody may write. bubblewrap cannot do this: a device file that it mounts
    read-only no longer works as a device. Needs CAP_SYS_ADMIN in the box's user namespace.
    """
    for entry in os.scandir("/dev"):
        if not entry.is_dir(follow_symlinks=False):
            # Flags that the host has set must stay: the kernel refuses to clear them.
            host_flags = os.statvfs(entry.path).f_flag & (NO_SUID | NO_DEV | NO_EXEC)
            mount("none", entry.path, None, REMOUNT | BIND | READ_ONLY | host_flags)


class PidNamespaces:
    """Gives each child of this process a new PID namespace, in which it is PID 1."""

    def __init__(self) -> None:
        """Keep this process's PID namespace. Needs CAP_SYS_ADMIN in the box's user namespace.

        No attempt inherits this capability, because it enters a new user namespace.
        """
        self._ours = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._used = False

    def prepare_next(self) -> None:
        """Make a PID namespace for the next child. Raises OSError."""
        # The kernel lets a process make a PID namespace for its children only if the current
        # namespace for its children is its own.
        if self._used:
            check(libc.setns(self._ours, _NEW_PID), "setns")
        check(libc.unshare(_NEW_PID), "unshare")
        self._used = True


def enter_namespaces(limits: Limits) -> None:
    """Enter new user, mount, IPC, UTS and network namespaces. Raises OSError.

    The uid stays. /tmp and /dev/shm are private, empty and limited in size. /proc is empty. With a
    GPU, it holds the part that the driver reads, unless `mount_reduced_proc` fails. When memory
    runs out, the kernel kills this process first.
    """
    # When memory runs out, the kernel should kill the attempt, not the zygote.
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", b"1000")
    empty = limits.device != CUDA or not mount_reduced_proc()
    uid = os.geteuid()
    gid = os.getegid()
    check(libc.unshare(_NEW_USER | NEW_NS | _NEW_IPC | _NEW_UTS | _NEW_NET), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        _write(f"/proc/self/{name}", text.encode())
    mount("none", "/", None, RECURSIVE | PRIVATE)
    size = f"size={limits.files_mib}m,nr_inodes=1024,mode=0700"
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, size)
    mount("tmpfs", "/dev/shm", "tmpfs", NO_SUID | NO_DEV, size)
    if empty:
        mount("tmpfs", "/proc", "tmpfs", NO_SUID | NO_DEV | READ_ONLY, "size=4k,nr_inodes=2")


def drop_privileges(limits: Limits) -> None:
    """Change to /tmp, drop every capability, set rlimits, and filter system calls.

    The process is no longer dumpable, so no other process of its user can trace it. Raises OSError,
    and KeyError on an unknown processor.
    """
    os.chdir("/tmp")
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    check(
        libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), struct.pack("6I", *[0] * 6)),
        "capset",
    )
    check(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    apply_rlimits(limits)
    seccomp.install(limits.device)


def _write(path: str, data: bytes) -> None:
    """Write to a file without a file object, because making one would cost each attempt time."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, data)
    finally:
        os.close(file)
