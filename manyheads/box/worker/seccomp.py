"""The seccomp filter of an attempt: the system calls that it may make, as a program for the kernel.

The list holds the calls that Python and torch need. They were recorded (strace) from all right and
wrong attempts of the course and from `tests/box/honest_attempts.py`, on torch 2.6 and 2.13 with
Python 3.11 to 3.13. Harmless calls of the same kind were added, so that an attempt loses no point
on another C library or kernel. Other calls fail with EPERM, and calls newer than the list with
ENOSYS. These are left out on purpose, because an attempt could use them to send a message to
another attempt or to a later run, or to observe one:

- the page cache: preadv2 with flags (RWF_NOWAIT), fadvise64, readahead, mincore, cachestat,
  sync_file_range, splice and similar calls, openat2 (RESOLVE_CACHED), mlock, MADV_COLD,
  MADV_PAGEOUT, MADV_POPULATE_*, MADV_COLLAPSE, MADV_MERGEABLE;
- state of a file or an open file, not of a process: locks, leases, owners and signals, write hints,
  watches;
- sockets with a name: an attempt has unnamed pairs only.

An attempt can start no program, because execve makes a process dumpable again. Shared mappings are
allowed: only a file that is opened for writing can be mapped for writing, and such files belong to
this attempt alone.

Classic BPF is written out here because it is short, and no maintained binding installs without a
compiler or a system library. Source: seccomp(2), linux/filter.h, the kernel's syscall tables and
the manual pages of these calls.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from .limits import CUDA

# verdicts of the filter; EPERM and ENOSYS make the call fail with that error
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
ALL_BITS = 0xFFFFFFFF
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_FURTHEST = 255  # instructions that a conditional jump can skip

_Code = list[bytes]


@dataclass(frozen=True)
class ArgumentCondition:
    """A condition on one argument of a system call: its masked value is one of some values."""

    argument: int  # from 0
    values: tuple[int, ...]
    mask: int = ALL_BITS
    included: bool = True  # if False, the masked value must not be one of the values
    # Compare the upper 32 bits, which matter for a pointer. The default is the lower 32 bits,
    # because the kernel uses most arguments as ints.
    upper: bool = False


@dataclass(frozen=True)
class Rule:
    """Allows a call if all conditions of one alternative hold. Otherwise it fails with EPERM."""

    alternatives: tuple[tuple[ArgumentCondition, ...], ...]

    def __init__(self, *alternatives: Sequence[ArgumentCondition]) -> None:
        object.__setattr__(self, "alternatives", tuple(map(tuple, alternatives)))


Verdict = int | Rule


def assemble(architecture: int, verdicts: Mapping[int, Verdict], first_unknown: int) -> bytes:
    """Return the program of the filter, in classic BPF.

    Calls without a verdict fail with EPERM, or with ENOSYS if their number is `first_unknown` or
    larger. A call of another architecture, which the processor may also support, ends the process.

    Args:
        architecture: the number of the architecture in linux/audit.h.
        verdicts: the verdict by the number of the call.
        first_unknown: the first number of calls that are newer than the list.
    """
    ends = [
        0,
        *(number for syscall in verdicts for number in (syscall, syscall + 1)),
        first_unknown,
    ]
    starts = sorted(set(ends))
    # the first number of each interval, and the verdict up to the next interval
    intervals: list[tuple[int, Verdict]] = []
    for start in starts:
        verdict = verdicts.get(start, EPERM if start < first_unknown else ENOSYS)
        if not intervals or intervals[-1][1] != verdict:
            intervals.append((start, verdict))
    code = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, architecture, 1, 0),
        _op(_RETURN, KILL),
        _op(_LOAD, _NUMBER),
    ]
    return b"".join([*code, *_search(intervals)])


def _search(intervals: Sequence[tuple[int, Verdict]]) -> _Code:
    """Return code that finds the interval of the number in the accumulator, by binary search."""
    if len(intervals) == 1:
        verdict = intervals[0][1]
        if not isinstance(verdict, Rule):
            return [_op(_RETURN, verdict)]
        return [
            *(op for conditions in verdict.alternatives for op in _all_of(conditions)),
            _op(_RETURN, EPERM),
        ]
    middle = len(intervals) // 2
    lower = _search(intervals[:middle])
    upper = _search(intervals[middle:])
    if len(lower) <= _FURTHEST:
        return [_op(_AT_LEAST, intervals[middle][0], len(lower), 0), *lower, *upper]
    return [_op(_AT_LEAST, intervals[middle][0], 0, 1), _op(_JUMP, len(lower)), *lower, *upper]


def _all_of(conditions: Sequence[ArgumentCondition]) -> _Code:
    """Return code that allows the call if all conditions hold, and else continues behind itself."""
    code = [_op(_RETURN, ALLOW)]
    for condition in reversed(conditions):
        code = [*_condition(condition, len(code)), *code]
    return code


def _condition(condition: ArgumentCondition, to_failure: int) -> _Code:
    """Return code that continues behind itself if the condition holds, and otherwise jumps further.

    Args:
        condition: the condition.
        to_failure: the number of instructions behind this code to skip if it does not hold.
    """
    code = [_op(_LOAD, _ARGUMENTS + 8 * condition.argument + 4 * condition.upper)]
    if condition.mask != ALL_BITS:
        code.append(_op(_AND, condition.mask))
    if_found, not_found = (0, to_failure) if condition.included else (to_failure, 0)
    last_index = len(condition.values) - 1
    for i, value in enumerate(condition.values):
        if_different = not_found if i == last_index else 0
        code.append(_op(_EQUAL, value, last_index - i + if_found, if_different))
    return code


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


# the numbers of a call on x86_64 and aarch64, or None if the architecture does not have the call
Numbers = dict[str, tuple[int | None, int | None]]

_ALWAYS: Numbers = {
    # On open files: these calls reach nothing beyond the descriptor.
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "preadv": (295, 69),
    "pwritev": (296, 70),
    "lseek": (8, 62),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "ftruncate": (77, 46),
    "truncate": (76, 45),
    "fallocate": (285, 47),
    "copy_file_range": (326, 285),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "eventfd": (284, None),
    "eventfd2": (290, 19),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "recvmmsg": (299, 243),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "shutdown": (48, 210),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "getsockopt": (55, 209),
    # On files: everything but /tmp and /dev/shm is read-only.
    "open": (2, None),
    "creat": (85, None),
    "openat": (257, 56),
    "stat": (4, None),
    "lstat": (6, None),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "umask": (95, 166),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "fgetxattr": (193, 10),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "flistxattr": (196, 13),
    # On its own memory.
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "brk": (12, 214),
    "msync": (26, 227),
    "membarrier": (324, 283),
    # On its own processes and threads: it sees no others.
    "fork": (57, None),
    "vfork": (58, None),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "get_robust_list": (274, 100),
    "rseq": (334, 293),
    "arch_prctl": (158, None),
    "restart_syscall": (219, 128),
    "sched_yield": (24, 124),
    # Signals and time.
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
    "sigaltstack": (131, 132),
    "pause": (34, None),
    "signalfd": (282, None),
    "signalfd4": (289, 74),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "alarm": (37, None),
    "timer_create": (222, 107),
    "timer_settime": (223, 110),
    "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111),
    "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87),
    # Questions about itself and the machine.
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getpgrp": (111, None),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "capget": (125, 90),
    "getpriority": (140, 141),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_getattr": (315, 275),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127),
    "getcpu": (309, 168),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "times": (100, 153),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrandom": (318, 278),
}
_BY_ARGUMENT: Numbers = {
    "clone": (56, 220),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "prctl": (157, 167),
    "mmap": (9, 222),
    "madvise": (28, 233),
    "socketpair": (53, 199),
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    "get_mempolicy": (239, 236),
    "prlimit64": (302, 261),
}
_MORE_ON_CUDA: Numbers = {
    "socket": (41, 198),
    "bind": (49, 200),
    "listen": (50, 201),
    "setsockopt": (54, 208),
    "sched_setaffinity": (203, 122),
    "mlock": (149, 228),
    "mlock2": (325, 284),
    "munlock": (150, 229),
    "mlockall": (151, 230),
    "munlockall": (152, 231),
    "setrlimit": (160, 164),
    "setpriority": (141, 140),
    "setpgid": (109, 154),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "execve": (59, 221),
    "execveat": (322, 281),
    "sendfile": (40, 71),
    "pkey_alloc": (330, 289),
    "pkey_free": (331, 290),
    "pkey_mprotect": (329, 288),
    # Files without a name use memory that only a cgroup limits. Python and torch need none.
    "memfd_create": (319, 279),
}
# A filter cannot check the flags of these calls, which are in memory. The C library and others use
# another call if these are "not implemented".
_NOT_IMPLEMENTED: Numbers = {"clone3": (435, 435), "openat2": (437, 437)}
# From this number on, calls are newer than Linux 5.15. They are "not implemented", so that callers
# use another call.
FIRST_UNKNOWN = 449

# The flags of clone for a thread or a fork, and the signal at its end. Not allowed: a namespace,
# another parent, a tracer.
_FLAGS_OF_CLONE = 0x017D5FFF
# The flags of mmap: shared or private, anonymous, at an address, stack, no reserve, populate,
# 32 bit. Not allowed: huge pages of the machine's pool, locked memory.
_FLAGS_OF_MMAP = 0x0013D873
# Advice on memory: how it will be read, freeing, forks, dumps, huge pages, guards of stacks.
_ADVICE = (0, 1, 2, 3, 4, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 102, 103)
# advice whose effect reveals something about other processes, or stays in the page cache
_KSM_AND_PAGE_CACHE = (12, 20, 21, 22, 23, 25)
# Requests of ioctl: TCGETS and TCGETS2 (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX,
# FICLONE.
_REQUESTS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x40049409)
# TIOCSTI, TIOCLINUX, FIOASYNC; and all requests for sockets, which include FIOSETOWN.
_TERMINALS_AND_SIGNALS, _SOCKETS, _GROUP = (0x5412, 0x541C, 0x5452), (0x8900,), 0xFFFFFF00
# Commands of fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ.
_COMMANDS, _SETFL, _ASYNC = (0, 1, 2, 3, 1030, 1032), 4, 0x2000
_SEALS = (1033, 1034)
# Options of prctl: a parent's death, names, timer slack, THP, vector lengths and pointer keys of
# aarch64, names of memory, no new privileges. Dumpable, capabilities, seccomp and speculation can
# only be read.
_OPTIONS = (
    1, 2, 3, 15, 16, 21, 23, 29, 30, 38, 39, 41, 42, 50, 51, 52, 54, 56, 63, 64,
    0x53564D41, 0x41555856,
)  # fmt: skip
# dumpable, seccomp, memory layout, core scheduling, tracer
_REFUSED_OPTIONS = (4, 22, 35, 62, 0x59616D61)
# socket types; the other bits of a type are flags
_AF_UNIX, _STREAM, _DGRAM, _SEQPACKET, _SOCKET_TYPES = 1, 1, 2, 5, 0xF
_MFD_HUGETLB, _MPOL_F_MEMS_ALLOWED, _RLIMIT_CORE = 4, 4, 4

_NO_FLAGS = Rule([ArgumentCondition(5, (0,))])
_RULES: dict[str, Verdict] = {
    "clone": Rule([ArgumentCondition(0, (0,), ALL_BITS & ~_FLAGS_OF_CLONE)]),
    "ioctl": Rule([ArgumentCondition(1, _REQUESTS)]),
    "fcntl": Rule(
        [ArgumentCondition(1, _COMMANDS)],
        [ArgumentCondition(1, (_SETFL,)), ArgumentCondition(2, (0,), _ASYNC)],
    ),
    "prctl": Rule([ArgumentCondition(0, _OPTIONS)]),
    "mmap": Rule([ArgumentCondition(3, (0,), ALL_BITS & ~_FLAGS_OF_MMAP)]),
    "madvise": Rule([ArgumentCondition(2, _ADVICE)]),
    "socketpair": Rule(
        [
            ArgumentCondition(0, (_AF_UNIX,)),
            ArgumentCondition(1, (_STREAM, _DGRAM, _SEQPACKET), _SOCKET_TYPES),
        ]
    ),
    "memfd_create": Rule([ArgumentCondition(1, (0,), _MFD_HUGETLB)]),
    "preadv2": _NO_FLAGS,
    "pwritev2": _NO_FLAGS,
    "get_mempolicy": Rule([ArgumentCondition(4, (0, _MPOL_F_MEMS_ALLOWED))]),
    "prlimit64": Rule(
        [ArgumentCondition(2, (0,)), ArgumentCondition(2, (0,), upper=True)]
    ),  # may only read
}
# The requests and options of the GPU's driver are not documented and could not be recorded. So for
# CUDA, these rules refuse dangerous values and allow all others.
_RULES_ON_CUDA: dict[str, Verdict] = _RULES | {
    "socket": Rule(
        [
            ArgumentCondition(0, (_AF_UNIX,)),
            ArgumentCondition(1, (_STREAM, _SEQPACKET), _SOCKET_TYPES),
        ]
    ),
    "ioctl": Rule(
        [
            ArgumentCondition(1, _TERMINALS_AND_SIGNALS, included=False),
            ArgumentCondition(1, _SOCKETS, _GROUP, included=False),
        ]
    ),
    "fcntl": Rule(
        [ArgumentCondition(1, (*_COMMANDS, *_SEALS))],
        [ArgumentCondition(1, (_SETFL,)), ArgumentCondition(2, (0,), _ASYNC)],
    ),
    "prctl": Rule([ArgumentCondition(0, _REFUSED_OPTIONS, included=False)]),
    "mmap": ALLOW,
    "madvise": Rule([ArgumentCondition(2, _KSM_AND_PAGE_CACHE, included=False)]),
    "setrlimit": Rule([ArgumentCondition(0, (_RLIMIT_CORE,), included=False)]),
    "prlimit64": Rule(
        [ArgumentCondition(2, (0,)), ArgumentCondition(2, (0,), upper=True)],
        [ArgumentCondition(1, (_RLIMIT_CORE,), included=False)],
    ),
}


def verdicts(column: int, on_cuda: bool) -> dict[int, Verdict]:
    """Return the verdict by the number of the call, for all calls that have one.

    Args:
        column: 0 for x86_64, 1 for aarch64.
        on_cuda: whether the attempt may use a GPU.
    """
    allowed = _ALWAYS | _BY_ARGUMENT | (_MORE_ON_CUDA if on_cuda else {})
    rules = _RULES_ON_CUDA if on_cuda else _RULES
    verdict_table: dict[int, Verdict] = {}
    for name, numbers in (allowed | _NOT_IMPLEMENTED).items():
        number = numbers[column]
        if number is not None:
            verdict_table[number] = ENOSYS if name in _NOT_IMPLEMENTED else rules.get(name, ALLOW)
    return verdict_table


ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2


@cache  # the zygote builds it for all attempts
def program(machine: str, device: str = "cpu") -> bytes:
    """Return the filter for a value of `platform.machine()`.

    Raises KeyError for an unknown machine.

    On "cuda" an attempt may make a unix socket and listen on it, because CUDA does so when it
    starts and fails otherwise. The socket has no other use: connect and accept are refused.
    """
    column, architecture = ARCHITECTURES[machine]
    return assemble(architecture, verdicts(column, device == CUDA), FIRST_UNKNOWN)


def install(device: str = "cpu") -> None:
    """Install the filter in this process for good, also for its children.

    It also sets "no new privileges", which the kernel demands. Raises OSError if the kernel
    refuses, and KeyError on an unknown machine.
    """
    code = program(platform.machine(), device)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _FILTER_MODE, header, 0, 0),
    ):
        if libc.prctl(*(ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)):
            raise OSError(ctypes.get_errno(), "the kernel refuses a seccomp filter")
