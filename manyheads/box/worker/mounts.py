"""mount(2) and umount2(2), as the worker needs them. They raise OSError."""

from __future__ import annotations

import ctypes
import os

READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, MOVE, RECURSIVE, PRIVATE = (
    1, 2, 4, 8, 0x20, 0x1000, 0x2000, 0x4000, 1 << 18,
)  # fmt: skip
_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    arguments = [None if a is None else a.encode() for a in (source, target, kind)]
    data = None if options is None else options.encode()
    check(libc.mount(*arguments, ctypes.c_ulong(flags), data), f"mount on {target}")


def unmount(target: str) -> None:
    """umount2(2) with MNT_DETACH: the path is free now, open files keep the mount alive."""
    check(libc.umount2(target.encode(), _DETACH), f"umount {target}")


def check(result: int, what: str) -> None:
    """Raise OSError with errno unless the result is 0."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
