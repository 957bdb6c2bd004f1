"""Confine one attempt inside the box, in steps.

The zygote uses `PidNamespaces` (a PID namespace holds the children of the process
that made it). `enter_namespaces` and `drop_privileges` run in the attempt, right
before student code. Source: unshare(2), user_namespaces(7), capabilities(7).
"""

from __future__ import annotations

import contextlib
import os
import struct

from . import procfs, seccomp
from .limits import CUDA, Limits
from .mounts import BIND, NO_DEV, NO_EXEC, NO_SUID, PRIVATE, READ_ONLY, RECURSIVE, REMOUNT, check, libc, mount
from .rlimits import apply_rlimits

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR = 4, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 40


def prefer_oom_kill() -> None:
    """Make the kernel kill the attempt, not the zygote, when memory runs out."""
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", b"1000")


def seal_devices() -> None:
    """Mount each device file read-only, for all attempts. It can still be written to, but its times cannot be set.

    Everybody may set the time of a file that everybody may write, so a later run could have read a note in it. bubblewrap
    cannot do this: what it mounts read-only is no device any more. Needs CAP_SYS_ADMIN in the box's user namespace.
    """
    for entry in os.scandir("/dev"):
        if not entry.is_dir(follow_symlinks=False):
            kept = os.statvfs(entry.path).f_flag & (NO_SUID | NO_DEV | NO_EXEC)  # the host's, which cannot be lifted
            mount("none", entry.path, None, REMOUNT | BIND | READ_ONLY | kept)


class PidNamespaces:
    """Makes each child of this process PID 1 of its own PID namespace."""

    def __init__(self) -> None:
        """Needs CAP_SYS_ADMIN in the box's user namespace. No attempt inherits that: it enters a user namespace of its own."""
        self._ours = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._used = False

    def next(self) -> None:
        """Make a PID namespace for the next child."""
        if self._used:  # a process can make one for its children only while it is in its own
            check(libc.setns(self._ours, _NEW_PID), "setns")
        check(libc.unshare(_NEW_PID), "unshare")
        self._used = True


def enter_namespaces(limits: Limits) -> None:
    """Enter new user, mount, IPC, UTS and network namespaces, with private, sized /tmp and /dev/shm and an empty /proc.

    On a GPU, /proc holds the part that the driver reads.
    """
    empty = limits.device != CUDA or not procfs.mount_reduced_proc()
    uid, gid = os.geteuid(), os.getegid()
    check(libc.unshare(_NEW_USER | _NEW_NS | _NEW_IPC | _NEW_UTS | _NEW_NET), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        _write(f"/proc/self/{name}", text.encode())
    mount("none", "/", None, RECURSIVE | PRIVATE)
    size = f"size={limits.files_mib}m,nr_inodes=1024,mode=0700"
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, size)
    mount("tmpfs", "/dev/shm", "tmpfs", NO_SUID | NO_DEV, size)
    if empty:
        mount("tmpfs", "/proc", "tmpfs", NO_SUID | NO_DEV | READ_ONLY, "size=4k,nr_inodes=2")


def drop_privileges(limits: Limits) -> None:
    """Drop every capability, set rlimits, filter system calls."""
    os.chdir("/tmp")
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    check(libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), struct.pack("6I", *[0] * 6)), "capset")
    check(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    apply_rlimits(limits)
    seccomp.install(limits.device)


def _write(path: str, data: bytes) -> None:
    """Write without a file object, whose construction would cost each attempt time."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, data)
    finally:
        os.close(file)
