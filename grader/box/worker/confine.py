"""Namespaces of its own for one attempt, inside the box: step by step from the warm process to the bound one.

`PidNamespaces` is the warm process's (a PID namespace holds the children of the
process that made it); `own_namespaces` and `bind_down` run in the attempt, right
before student code. Source: unshare(2), user_namespaces(7), capabilities(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct

from . import seccomp
from .limits import Limits, apply_rlimits

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 1, 2, 4, 0x4000, 1 << 18
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR = 4, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 40

_libc = ctypes.CDLL(None, use_errno=True)


def die_first() -> None:
    """Where memory runs out, the attempt goes, not the warm process it came from."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


class PidNamespaces:
    """Each child of this process is PID 1 of a PID namespace of its own."""

    def __init__(self) -> None:
        """Needs CAP_SYS_ADMIN in the box's own user namespace, which no attempt inherits: it enters one of its own."""
        self._ours = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._used = False

    def next(self) -> None:
        """A fresh one for the next child."""
        if self._used:  # only from its own namespace may a process make one for its children
            _check(_libc.setns(self._ours, _NEW_PID), "setns")
        _check(_libc.unshare(_NEW_PID), "unshare")
        self._used = True


def own_namespaces(limits: Limits) -> None:
    """User, mount, IPC, UTS and network namespaces, with private, sized /tmp and /dev/shm and no /proc."""
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEW_USER | _NEW_NS | _NEW_IPC | _NEW_UTS | _NEW_NET), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    size = f"size={limits.files_mib}m,nr_inodes=1024,mode=0700"
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, size)
    _mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, size)
    _mount("tmpfs", "/proc", "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_RDONLY, "size=4k,nr_inodes=2")


def bind_down(limits: Limits) -> None:
    """Drop every capability, set rlimits, filter system calls."""
    os.chdir("/tmp")
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    _check(_libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), struct.pack("6I", *[0] * 6)), "capset")
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    apply_rlimits(limits)
    seccomp.install()


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    arguments = [None if a is None else a.encode() for a in (source, target, kind)]
    data = None if options is None else options.encode()
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), data), f"mount on {target}")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
