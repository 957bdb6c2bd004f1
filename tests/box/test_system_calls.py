"""The seccomp filter of system calls: its verdicts, and its effect on attempts in a box."""

import re
import struct

import pytest

from manyheads.box.connection import Box
from manyheads.box.worker import seccomp
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from manyheads.box.worker.seccomp import (
    ALLOW,
    ENOSYS,
    EPERM,
    KILL,
    ArgumentCondition,
    Rule,
    assemble,
)
from tests.box.conftest import value_of
from tests.box.honest_attempts import BODIES, REFUSED_KINDLY
from tests.make import replies

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return the filter's verdict on one system call: run its BPF program as the kernel does."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("=HBBI", program))
    index, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = code[index]
        index += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            index += value
        elif operation == 0x15:
            index += if_true if accumulator == value else if_false
        elif operation == 0x35:
            index += if_true if accumulator >= value else if_false
        else:
            assert operation == 0x06
            return value


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_unknown_system_calls_are_refused(machine, device):
    program = seccomp.program(machine, device)
    for number in (450, 463, 470, 1000, 0x40000000, 0x40000000 + 16, 0xFFFFFFFF):
        assert verdict(program, ARCHITECTURES[machine], number) == ENOSYS


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_of_another_architecture_end_the_process(machine):
    assert verdict(seccomp.program(machine), 0x40000003, 4) == KILL


# A call | verdict on a CPU | verdict on a GPU | number on x86_64, number on aarch64, arguments.
CALLS = """\
read                                          | ALLOW  | ALLOW  | 0 63
clone of a thread                             | ALLOW  | ALLOW  | 56 220 0x3D0F00
ioctl TCGETS                                  | ALLOW  | ALLOW  | 16 29 1 0x5401
fcntl F_SETFL                                 | ALLOW  | ALLOW  | 72 25 1 4 0x800
prctl PR_SET_NAME                             | ALLOW  | ALLOW  | 157 167 15
mmap as malloc does it                        | ALLOW  | ALLOW  | 9 222 0 4096 3 0x22
madvise MADV_HUGEPAGE                         | ALLOW  | ALLOW  | 28 233 0 4096 14
prlimit64 that asks                           | ALLOW  | ALLOW  | 302 261 0 4 0 1
preadv2 without flags                         | ALLOW  | ALLOW  | 327 286 3 1 1 0 0 0
socketpair of unix sockets                    | ALLOW  | ALLOW  | 53 199 1 0x80001
clone into a user namespace                   | EPERM  | EPERM  | 56 220 0x10000011
clone beside its parent                       | EPERM  | EPERM  | 56 220 0x8011
ioctl FIOASYNC                                | EPERM  | EPERM  | 16 29 1 0x5452
ioctl FIOSETOWN                               | EPERM  | EPERM  | 16 29 1 0x8901
ioctl SIOCGIFCONF                             | EPERM  | EPERM  | 16 29 1 0x8912
ioctl TIOCSTI                                 | EPERM  | EPERM  | 16 29 1 0x5412
ioctl TIOCSTI with bits that the kernel drops | EPERM  | EPERM  | 16 29 1 0x100005412
fcntl F_SETFL with O_ASYNC                    | EPERM  | EPERM  | 72 25 1 4 0x2000
fcntl F_SET_RW_HINT                           | EPERM  | EPERM  | 72 25 1 1036
fcntl F_SETLK                                 | EPERM  | EPERM  | 72 25 1 6
prctl PR_SET_DUMPABLE                         | EPERM  | EPERM  | 157 167 4 1
madvise MADV_PAGEOUT                          | EPERM  | EPERM  | 28 233 0 4096 21
prlimit64 that sets the core's                | EPERM  | EPERM  | 302 261 0 4 0x10000000000
preadv2 with RWF_NOWAIT                       | EPERM  | EPERM  | 327 286 3 1 1 0 0 8
socketpair of another family                  | EPERM  | EPERM  | 53 199 30 5
socket of unix for messages                   | EPERM  | EPERM  | 41 198 1 2
socket of the internet                        | EPERM  | EPERM  | 41 198 2 1
connect                                       | EPERM  | EPERM  | 42 203
fadvise64                                     | EPERM  | EPERM  | 221 223
readahead                                     | EPERM  | EPERM  | 187 213
mincore                                       | EPERM  | EPERM  | 27 232
io_uring_setup                                | EPERM  | EPERM  | 425 425
bpf                                           | EPERM  | EPERM  | 321 280
unshare                                       | EPERM  | EPERM  | 272 97
ptrace                                        | EPERM  | EPERM  | 101 117
clone3                                        | ENOSYS | ENOSYS | 435 435
openat2                                       | ENOSYS | ENOSYS | 437 437
ioctl of a driver                             | EPERM  | ALLOW  | 16 29 9 0xC020462A
ioctl of the driver's memory                  | EPERM  | ALLOW  | 16 29 9 0x30000001
mmap of the machine's huge pages              | EPERM  | ALLOW  | 9 222 0 4096 3 0x40022
prlimit64 that sets another                   | EPERM  | ALLOW  | 302 261 0 7 0x10000000000
socket of unix                                | EPERM  | ALLOW  | 41 198 1 0x80005
bind                                          | EPERM  | ALLOW  | 49 200
execve                                        | EPERM  | ALLOW  | 59 221
"""
VERDICTS = {"ALLOW": ALLOW, "EPERM": EPERM, "ENOSYS": ENOSYS}


@pytest.mark.parametrize("row", [re.sub(" +", " ", row) for row in CALLS.splitlines()])
def test_the_filter_gives_each_call_its_verdict(row):
    _, *answers, numbers = row.split(" | ")
    x86_64, aarch64, *arguments = [int(number, 0) for number in numbers.split()]
    for number, (machine, architecture) in zip(
        (x86_64, aarch64), ARCHITECTURES.items(), strict=True
    ):
        for device, answer in zip(("cpu", "cuda"), answers, strict=True):
            program = seccomp.program(machine, device)
            assert verdict(program, architecture, number, *arguments) == VERDICTS[answer], machine


def test_rules_with_alternatives_are_compiled_correctly():
    """Compare the compiled filter with a slow reading of the same rules, for many calls."""
    rule = Rule(
        [ArgumentCondition(0, (1, 2)), ArgumentCondition(1, (0,), 0xF0)],
        [ArgumentCondition(0, (3,), included=False), ArgumentCondition(1, (7,), upper=True)],
    )
    verdicts = {
        number: rule if number % 5 == 0 else ALLOW for number in range(3, 400) if number % 7
    }
    program = assemble(1, verdicts, 500)
    for number in range(510):
        for first in (0, 1, 2, 3):
            for second in (0, 0x0F, 0x10, 7 << 32, 7):
                expected = verdicts.get(number, EPERM if number < 500 else ENOSYS)
                if isinstance(expected, Rule):
                    first_alternative = first in (1, 2) and not second & 0xF0
                    second_alternative = first != 3 and second >> 32 == 7
                    expected = ALLOW if first_alternative or second_alternative else EPERM
                assert verdict(program, 1, number, first, second) == expected


LIMITS = Limits(seconds_per_call=60.0, seconds_per_attempt=120.0)


def assert_returns(box: Box, body: str, expected: float, head: str = "") -> None:
    """Check what `f()` with this body returns in a box; `head` is code before it."""
    source = f"import os, sys, time, torch\n{head}\ndef f():\n    {body.strip()}\n"
    assert value_of(box, LIMITS, source, seconds=60.0) == expected


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_honest_attempt_is_allowed(box, body):
    assert_returns(box, body, 1.0)


@pytest.mark.parametrize(("body", "exception_types"), REFUSED_KINDLY.values(), ids=REFUSED_KINDLY)
def test_a_refusal_is_an_ordinary_python_exception(box, body, exception_types):
    source = f"import os, torch\ndef f():\n    {body}\n"
    (reply,) = replies(box, LIMITS, source, Call("f"), seconds=60.0)
    assert {reply.raised.type, *reply.raised.bases} & exception_types, reply.raised


# Each expression below raises OSError or returns -1 if it fails. The box must refuse it even if the
# kernel would allow it.
HELPERS = """
import ctypes, errno, fcntl, mmap, os, resource, socket, struct, subprocess, sys, torch

libc = ctypes.CDLL(None, use_errno=True)
shared = os.open(os.__file__, os.O_RDONLY)  # a file that every attempt can read
LOCK = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0)
page = mmap.mmap(shared, 4096, mmap.MAP_SHARED, mmap.PROT_READ)

def address():
    return ctypes.c_void_p(torch.frombuffer(page, dtype=torch.uint8).data_ptr())

def pipe():
    return os.pipe()

def pair():
    return socket.socketpair()[0]

def works(act):
    ctypes.set_errno(0)
    try:
        if act() != -1:
            return 1.0
        error = ctypes.get_errno()
    except ValueError:  # what resource.setrlimit makes of EPERM
        return 0.0
    except OSError as raised:
        error = raised.errno
    return float(error not in (errno.EPERM, errno.ENOSYS, errno.EROFS))  # any other is the \
kernel's word on a call that came through
"""

LEAVES_A_MESSAGE = {
    "asks whether a page is in the cache, by preadv2": (
        "os.preadv(shared, [bytearray(1)], 0, os.RWF_NOWAIT)"
    ),
    "writes with flags, by pwritev2": (
        "os.pwritev(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), [b'x'], 0, os.RWF_HIPRI)"
    ),
    "drops pages from the cache, by fadvise": (
        "os.posix_fadvise(shared, 0, 0, os.POSIX_FADV_DONTNEED) or 1"
    ),
    "brings pages into the cache, by readahead": "libc.readahead(shared, ctypes.c_long(0), 4096)",
    "asks which pages are in the cache, by mincore": (
        "libc.mincore(address(), 4096, ctypes.create_string_buffer(1))"
    ),
    "asks how many pages are in the cache, by cachestat": (
        "libc.syscall(451, shared, ctypes.create_string_buffer(16), "
        "ctypes.create_string_buffer(40), 0)"
    ),
    "writes a file's pages back": (
        "libc.sync_file_range(shared, ctypes.c_long(0), ctypes.c_long(0), 0)"
    ),
    "moves pages of a file into a pipe": "libc.splice(shared, None, pipe()[1], None, 1, 0)",
    "copies pages of a file into a pipe": "os.sendfile(pipe()[1], shared, 0, 1)",
    "gives memory to a pipe": (
        "libc.vmsplice(pipe()[1], (ctypes.c_ulong * 2)(address().value, 1), 1, 0)"
    ),
    "locks a file's pages into memory": "libc.mlock(address(), 4096)",
    (
        "locks a file's pages into memory as it maps them"
    ): "libc.mmap(None, 4096, 1, 0x2002, shared, 0)",
    "takes a file's pages out of memory": "page.madvise(21) or 1",
    "calls a file's pages cold": "page.madvise(20) or 1",
    "brings a file's pages into memory": "page.madvise(22) or 1",
    "shares equal pages with others": "mmap.mmap(-1, 4096).madvise(mmap.MADV_MERGEABLE) or 1",
    "opens a path only if it is in the cache": (
        "libc.syscall(437, -100, b'/', (ctypes.c_uint64 * 3)(0x80000, 0, 0x20), 24)"
    ),
    "leaves a hint on a file": (
        "fcntl.fcntl(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), 1036, struct.pack('Q', 2)) and 1"
    ),
    "reads a hint on a file": "fcntl.fcntl(shared, 1035, struct.pack('Q', 0)) and 1",
    "leaves a hint on an open file": (
        "fcntl.fcntl(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), 1038, struct.pack('Q', 2)) and 1"
    ),
    "leaves the time on a device that everybody has": "os.utime('/dev/null') or 1",
    "leaves the time on another": "os.utime('/dev/urandom') or 1",
    "watches a file": "libc.inotify_init1(0)",
    "takes a lease on a file": "fcntl.fcntl(shared, fcntl.F_SETLEASE, fcntl.F_RDLCK) or 1",
    "locks a file": "libc.flock(shared, 1)",
    "locks a part of a file": "fcntl.fcntl(shared, fcntl.F_SETLK, LOCK) and 1",
    "asks who locks a part of a file": "fcntl.fcntl(shared, fcntl.F_GETLK, LOCK) and 1",
    "locks a part of an open file": "fcntl.fcntl(shared, 37, LOCK) and 1",
    "makes memory that processes share by a key": "libc.shmget(1, 4096, 0o1600)",
    "makes a semaphore that processes share": "libc.semget(1, 1, 0o1600)",
    "makes a queue of messages": "libc.msgget(1, 0o1600)",
    "makes a queue of messages by a name": "libc.mq_open(b'/manyheads_hostile', 66, 0o600, 0)",
    "asks for a keyring": "libc.syscall(250, 0, -3, 1)",
    "sets up asynchronous reads": "libc.syscall(206, 1, ctypes.byref(ctypes.c_ulong(0)))",
}
REACHES_OUT = {
    "has a signal sent by fcntl": "fcntl.fcntl(pipe()[0], fcntl.F_SETOWN, 1) or 1",
    "has a signal sent by ioctl, FIOSETOWN": (
        "fcntl.ioctl(pair(), 0x8901, struct.pack('i', 1)) and 1"
    ),
    "has a signal sent by ioctl, SIOCSPGRP": (
        "fcntl.ioctl(pair(), 0x8902, struct.pack('i', 1)) and 1"
    ),
    "has a signal sent whenever something comes, by ioctl": (
        "fcntl.ioctl(pipe()[0], 0x5452, struct.pack('i', 1)) and 1"
    ),
    (
        "has a signal sent whenever something comes, by fcntl"
    ): "fcntl.fcntl(pipe()[0], fcntl.F_SETFL, 0x2000) or 1",
    "lists network interfaces": "fcntl.ioctl(pair(), 0x8912, struct.pack('iP', 0, 0)) and 1",
    "binds an abstract name": "pair().bind('\\0manyheads_hostile') or 1",
    "connects": "pair().connect('\\0manyheads_hostile') or 1",
    "makes a pair of sockets of another family": "libc.socketpair(30, 5, 0, (ctypes.c_int * 2)())",
    "lets its core be dumped": "libc.prctl(4, 1, 0, 0, 0)",
    "lifts the bound on its core": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)) or 1",
    "starts a program": "subprocess.run([sys.executable, '-I', '-S', '-c', '']) and 1",
    "takes huge pages of the machine": "libc.memfd_create(b'm', 4)",
    "keeps a file in memory alone": "libc.memfd_create(b'm', 0)",
    "takes away what is mounted": "libc.umount2(b'/tmp', 2)",
    "mounts something": "libc.mount(b'proc', b'/tmp', b'proc', 0, None)",
    "makes a namespace of mounts": "libc.unshare(0x00020000)",
    "enters another namespace": "libc.setns(0, 0)",
    "becomes another user": "libc.setuid(0)",
}
REFUSED = LEAVES_A_MESSAGE | REACHES_OUT


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_calls_that_leave_messages_or_reach_out_are_refused(box, expression):
    assert_returns(box, f"return works(lambda: {expression})", 0.0, HELPERS)
