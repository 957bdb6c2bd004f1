"""A seccomp filter that refuses system calls which no student code needs.

The filter is classic BPF, written out here because it is short and no maintained
binding installs without a compiler or a system library. Refused calls fail
with EPERM. Source: seccomp(2) and linux/filter.h.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from contextlib import suppress
from functools import cache

from .limits import CUDA

# System call numbers: (x86_64, aarch64), None if the architecture does not have the call.
_SOCKET = (41, 198)
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "socket": _SOCKET, "flock": (73, 32),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "personality": (135, 92),
    "mknod": (133, None), "mknodat": (259, 33), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "vmsplice": (278, 75), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "vhangup": (153, 58), "lookup_dcookie": (212, 18), "move_pages": (279, 239),
    "mbind": (237, 235), "migrate_pages": (256, 238), "set_mempolicy": (238, 237),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "io_setup": (206, 0),
    "setsid": (112, 157), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "msgget": (68, 186), "semget": (64, 190), "shmget": (29, 194), "mq_open": (240, 180),
}  # fmt: skip
_REFUSED_ON_CPU = {
    "sched_setaffinity": (203, 122)
}  # an attempt stays on its judge's CPU, so that it slows no other student's attempt
_REFUSED_ON_CUDA = {
    "connect": (42, 203),
    "accept": (43, 202),
    "accept4": (288, 242),
}  # on the CPU no socket can be made
_FIRST_UNKNOWN = 449
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_IOCTL = (16, 29)
_FCNTL = (72, 25)

_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# Locks, leases and notifications on files that attempts share would carry messages between them, as would signals by fd.
_GETLK, _SETLK, _SETLKW, _SETOWN, _SETSIG, _SETOWN_EX = 5, 6, 7, 8, 10, 15
_OFD_GETLK, _OFD_SETLK, _OFD_SETLKW, _SETLEASE, _NOTIFY = 36, 37, 38, 1024, 1026
_REFUSED_FCNTL = (
    _GETLK, _SETLK, _SETLKW, _SETOWN, _SETSIG, _SETOWN_EX, _OFD_GETLK, _OFD_SETLK, _OFD_SETLKW, _SETLEASE, _NOTIFY,
)  # fmt: skip
_AF_UNIX, _STREAM, _SEQPACKET, _SOCKET_TYPES = 1, 1, 5, 0xF  # the other bits of a type are flags
_EPERM, _ENOSYS = 1, 38
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2


@cache  # the zygote builds it for all attempts
def program(machine: str, device: str = "cpu") -> bytes:
    """The filter for a value of `platform.machine()`. Raises KeyError for an unknown machine.

    On "cuda" an attempt may make a unix socket and listen on it, because CUDA does so when it starts and fails otherwise.
    The socket is of no other use: connect, accept and sending to another socket are refused.
    """
    column, architecture = ARCHITECTURES[machine]
    code = [
        _op(_LOAD, _ARCHITECTURE), _op(_EQUAL, architecture, 1, 0), _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
        # Refuse all calls newer than Linux 5.15, which glibc does not need, so that new system calls need no new rule.
        # Numbers above 0x40000000 are the x32 table of x86_64.
        _op(_AT_LEAST, _FIRST_UNKNOWN, 0, 1), _op(_RETURN, _ERRNO | _ENOSYS),
        _op(_EQUAL, _CLONE3[column], 0, 1), _op(_RETURN, _ERRNO | _ENOSYS),  # glibc falls back to clone
        _op(_EQUAL, _CLONE[column], 0, 3), _op(_LOAD, _FIRST_ARGUMENT),
        _op(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _op(_RETURN, _ERRNO | _EPERM),
        _op(_LOAD, _NUMBER),
        _op(_EQUAL, _IOCTL[column], 0, 4), _op(_LOAD, _SECOND_ARGUMENT),
        _op(_EQUAL, _TIOCSTI, 1, 0), _op(_EQUAL, _TIOCLINUX, 0, 1), _op(_RETURN, _ERRNO | _EPERM),
        _op(_LOAD, _NUMBER),
    ]  # fmt: skip
    commands = [_op(_EQUAL, command, len(_REFUSED_FCNTL) - i, 0) for i, command in enumerate(_REFUSED_FCNTL)]
    code += [_op(_EQUAL, _FCNTL[column], 0, len(commands) + 3), _op(_LOAD, _SECOND_ARGUMENT)]
    code += [*commands, _op(_RETURN, _ALLOW), _op(_RETURN, _ERRNO | _EPERM)]
    if device == CUDA:
        code += [
            _op(_EQUAL, _SOCKET[column], 0, 8), _op(_LOAD, _FIRST_ARGUMENT), _op(_EQUAL, _AF_UNIX, 0, 5),
            _op(_LOAD, _SECOND_ARGUMENT), _op(_AND, _SOCKET_TYPES),
            _op(_EQUAL, _STREAM, 1, 0), _op(_EQUAL, _SEQPACKET, 0, 1), _op(_RETURN, _ALLOW),
            _op(_LOAD, _NUMBER),
        ]  # fmt: skip
    for numbers in [*_REFUSED.values(), *(_REFUSED_ON_CUDA if device == CUDA else _REFUSED_ON_CPU).values()]:
        number = numbers[column]
        if number is not None:
            code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, _ERRNO | _EPERM)]
    return b"".join([*code, _op(_RETURN, _ALLOW)])


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


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
