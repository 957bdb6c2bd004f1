"""The filter of system calls: what it answers to each, on both architectures, and what attempts of either kind meet in a box."""

import struct

import pytest

from manyheads.box.level import Box
from manyheads.box.worker import seccomp
from manyheads.box.worker.answers import Reply
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from manyheads.box.worker.seccomp import ALLOW, ENOSYS, EPERM, KILL, Condition, Rule, assemble
from tests.make import replies

from .honest_attempts import BODIES, REFUSED_KINDLY
from .refused_calls import CARRIES_A_MESSAGE, PRELUDE, REACHES_OUT

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Run the program on one call, as the kernel would."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("=HBBI", program))
    at, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            at += value
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        elif operation == 0x35:
            at += if_true if accumulator >= value else if_false
        else:
            assert operation == 0x06
            return value


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("machine", MACHINES)
def test_refuses_whatever_it_does_not_know(machine: str, device: str) -> None:
    program = seccomp.program(machine, device)
    for number in (450, 463, 470, 1000, 0x40000000, 0x40000000 + 16, 0xFFFFFFFF):
        assert verdict(program, MACHINES[machine], number) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architectures_calls_end_the_process(machine: str) -> None:
    assert verdict(seccomp.program(machine), 0x40000003, 4) == KILL


CALLS = [  # name, number on x86_64 and aarch64, arguments, on the CPU, on a GPU
    ("read", (0, 63), (), ALLOW, ALLOW),
    ("clone of a thread", (56, 220), (0x3D0F00,), ALLOW, ALLOW),
    ("clone into a user namespace", (56, 220), (0x10000011,), EPERM, EPERM),
    ("clone beside its parent", (56, 220), (0x8011,), EPERM, EPERM),
    ("clone3", (435, 435), (), ENOSYS, ENOSYS),
    ("openat2", (437, 437), (), ENOSYS, ENOSYS),
    ("ioctl TCGETS", (16, 29), (1, 0x5401), ALLOW, ALLOW),
    ("ioctl of a driver", (16, 29), (9, 0xC020462A), EPERM, ALLOW),
    ("ioctl of the driver's memory", (16, 29), (9, 0x30000001), EPERM, ALLOW),
    ("ioctl FIOASYNC", (16, 29), (1, 0x5452), EPERM, EPERM),
    ("ioctl FIOSETOWN", (16, 29), (1, 0x8901), EPERM, EPERM),
    ("ioctl SIOCGIFCONF", (16, 29), (1, 0x8912), EPERM, EPERM),
    ("ioctl TIOCSTI", (16, 29), (1, 0x5412), EPERM, EPERM),
    ("ioctl TIOCSTI with bits that the kernel drops", (16, 29), (1, 0x100005412), EPERM, EPERM),
    ("fcntl F_SETFL", (72, 25), (1, 4, 0x800), ALLOW, ALLOW),
    ("fcntl F_SETFL with O_ASYNC", (72, 25), (1, 4, 0x2000), EPERM, EPERM),
    ("fcntl F_SET_RW_HINT", (72, 25), (1, 1036), EPERM, EPERM),
    ("fcntl F_SETLK", (72, 25), (1, 6), EPERM, EPERM),
    ("prctl PR_SET_NAME", (157, 167), (15,), ALLOW, ALLOW),
    ("prctl PR_SET_DUMPABLE", (157, 167), (4, 1), EPERM, EPERM),
    ("mmap as malloc does it", (9, 222), (0, 4096, 3, 0x22), ALLOW, ALLOW),
    ("mmap of the machine's huge pages", (9, 222), (0, 4096, 3, 0x40022), EPERM, ALLOW),
    ("madvise MADV_HUGEPAGE", (28, 233), (0, 4096, 14), ALLOW, ALLOW),
    ("madvise MADV_PAGEOUT", (28, 233), (0, 4096, 21), EPERM, EPERM),
    ("prlimit64 that asks", (302, 261), (0, 4, 0, 1), ALLOW, ALLOW),
    ("prlimit64 that sets the core's", (302, 261), (0, 4, 1 << 40), EPERM, EPERM),
    ("prlimit64 that sets another", (302, 261), (0, 7, 1 << 40), EPERM, ALLOW),
    ("preadv2 without flags", (327, 286), (3, 1, 1, 0, 0, 0), ALLOW, ALLOW),
    ("preadv2 with RWF_NOWAIT", (327, 286), (3, 1, 1, 0, 0, 8), EPERM, EPERM),
    ("socketpair of unix sockets", (53, 199), (1, 0x80001), ALLOW, ALLOW),
    ("socketpair of another family", (53, 199), (30, 5), EPERM, EPERM),
    ("socket of unix", (41, 198), (1, 0x80005), EPERM, ALLOW),
    ("socket of unix for messages", (41, 198), (1, 2), EPERM, EPERM),
    ("socket of the internet", (41, 198), (2, 1), EPERM, EPERM),
    ("connect", (42, 203), (), EPERM, EPERM),
    ("bind", (49, 200), (), EPERM, ALLOW),
    ("execve", (59, 221), (), EPERM, ALLOW),
    ("fadvise64", (221, 223), (), EPERM, EPERM),
    ("readahead", (187, 213), (), EPERM, EPERM),
    ("mincore", (27, 232), (), EPERM, EPERM),
    ("io_uring_setup", (425, 425), (), EPERM, EPERM),
    ("bpf", (321, 280), (), EPERM, EPERM),
    ("unshare", (272, 97), (), EPERM, EPERM),
    ("ptrace", (101, 117), (), EPERM, EPERM),
]


@pytest.mark.parametrize(("_", "numbers", "arguments", "on_cpu", "on_gpu"), CALLS, ids=[call[0] for call in CALLS])
def test_answers(_: str, numbers: tuple[int, int], arguments: tuple[int, ...], on_cpu: int, on_gpu: int) -> None:
    for number, (machine, architecture) in zip(numbers, MACHINES.items(), strict=True):
        for device, expected in (("cpu", on_cpu), ("cuda", on_gpu)):
            program = seccomp.program(machine, device)
            assert verdict(program, architecture, number, *arguments) == expected, (machine, device)


def test_alternatives_and_neighbours_are_told_apart() -> None:
    """Beside a slow reading of the same rules, for every number and some arguments."""
    rule = Rule(
        [Condition(0, (1, 2)), Condition(1, (0,), 0xF0)],
        [Condition(0, (3,), wanted=False), Condition(1, (7,), upper=True)],
    )
    verdicts = {number: rule if number % 5 == 0 else ALLOW for number in range(3, 400) if number % 7}
    program = assemble(1, verdicts, 500)
    for number in range(510):
        for first in (0, 1, 2, 3):
            for second in (0, 0x0F, 0x10, 7 << 32, 7):
                expected = verdicts.get(number, EPERM if number < 500 else ENOSYS)
                if isinstance(expected, Rule):
                    one = first in (1, 2) and not second & 0xF0
                    other = first != 3 and second >> 32 == 7
                    expected = ALLOW if one or other else EPERM
                assert verdict(program, 1, number, first, second) == expected


LIMITS = Limits(seconds_per_call=60.0, seconds_per_attempt=120.0)


def reply(box: Box, body: str, prelude: str = "import os, sys, time, torch\n") -> Reply:
    source = f"{prelude}\ndef f():\n    {body.strip()}\n"
    return replies(box, LIMITS, source, Call("f"), seconds=60.0)[0]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_honest_attempt_may_use(box: Box, body: str) -> None:
    got = reply(box, body)
    assert got.raised is None, got.raised
    assert got.outputs[0].tensor.item() == 1.0


@pytest.mark.parametrize(("body", "kinds"), REFUSED_KINDLY.values(), ids=REFUSED_KINDLY)
def test_is_refused_with_an_exception_of_python(box: Box, body: str, kinds: set[str]) -> None:
    got = reply(box, body)
    assert {got.raised.type, *got.raised.bases} & kinds, got.raised


REFUSED = CARRIES_A_MESSAGE | REACHES_OUT


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_leaves_no_message_for_another_run_and_does_not_reach_out_of_the_box(box: Box, expression: str) -> None:
    got = reply(box, f"return works(lambda: {expression})", PRELUDE)
    assert got.raised is None, got.raised
    assert got.outputs[0].tensor.item() == 0.0
