"""What an attempt inherits from the warm process and the judge: two pipes, and nothing that other attempts share."""

import os
import resource
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from tests.make import replies
from tests.witness import below

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)
SOURCE = """
import ctypes, fcntl, os, resource, stat, torch

def opened():
    found = []
    for number in range(4096):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        found += [number, stat.S_IFMT(mode)]
    return torch.tensor(found)

def flags(more):
    before = [fcntl.fcntl(number, fcntl.F_GETFL) for number in (0, 1, 2)]
    for number, flags in enumerate(before):
        fcntl.fcntl(number, fcntl.F_SETFL, flags | more)
    return torch.tensor(before)

def core():
    return torch.tensor([*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)])
"""
CHARACTERS, PIPE = 0o020000, 0o010000


def numbers(box: Box, name: str, *args: int) -> list[int]:
    """What this function answers in a fresh attempt."""
    (reply,) = replies(box, LIMITS, SOURCE, Call(name, args))
    return [int(number) for number in reply.outputs[0].tensor]


def test_the_null_device_and_two_pipes_are_open_and_no_socket(box: Box) -> None:
    found = numbers(box, "opened")
    assert dict(zip(found[::2], found[1::2], strict=True)) == {
        0: CHARACTERS, 1: CHARACTERS, 2: CHARACTERS, 64: PIPE, 65: PIPE
    }  # fmt: skip


def test_flags_that_one_attempt_sets_are_not_the_next_ones(box: Box) -> None:
    first = numbers(box, "flags", os.O_APPEND | os.O_NONBLOCK)
    assert numbers(box, "flags", 0) == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read the warm process's mappings")
def test_no_mapping_is_shared_and_writable(box: Box) -> None:
    assert isinstance(box, NamespaceBox)
    warm = below(box._reaper.pid)[-1]
    maps = Path(f"/proc/{warm}/maps").read_text()
    assert "libtorch" in maps
    rights = [line.split()[1] for line in maps.splitlines()]
    assert [each for each in rights if each[1] == "w" and each[3] == "s"] == []


def test_no_core_of_it_is_dumped_to_a_file_or_to_a_handler(box: Box) -> None:
    """A handler that the core pattern pipes to gets no core at limit 1, but at 0; and of what is not dumpable no one does."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    assert numbers(box, "core") == [most, most, 0]
