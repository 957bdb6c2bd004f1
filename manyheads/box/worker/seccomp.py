"""The seccomp filter of an attempt: it allows the system calls of `system_calls` and refuses all others.

Refused calls fail with EPERM; those that this list does not know yet, with ENOSYS.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from contextlib import suppress
from functools import cache

from . import system_calls
from .bpf import assemble
from .limits import CUDA

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2


@cache  # the zygote builds it for all attempts
def program(machine: str, device: str = "cpu") -> bytes:
    """The filter for a value of `platform.machine()`. Raises KeyError for an unknown machine.

    On "cuda" an attempt may make a unix socket and listen on it, because CUDA does so when it starts and fails otherwise.
    The socket is of no other use: connect and accept are refused.
    """
    column, architecture = ARCHITECTURES[machine]
    return assemble(architecture, system_calls.verdicts(column, device == CUDA), system_calls.FIRST_UNKNOWN)


def make_ready() -> None:
    """Build the filter for attempts on the CPU. On an unknown machine `install` raises the error."""
    with suppress(KeyError):
        program(platform.machine())


def install(device: str = "cpu") -> None:
    """Install the filter in this process for good. Raises OSError if the kernel refuses, KeyError on an unknown machine."""
    code = program(platform.machine(), device)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER_MODE, header, 0, 0)):
        if libc.prctl(*(ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)):
            raise OSError(ctypes.get_errno(), "the kernel refuses a seccomp filter")
