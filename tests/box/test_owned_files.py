"""What an attempt inherits: two pipes, nothing that other attempts share, and no file that it could mark."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box.contents import Bind
from manyheads.box.level import Box
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.nvidia import Equipment
from manyheads.box.warm import uid_for_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from tests.make import replies
from tests.witness import below

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)
OWNED = "/box/owned"
SOURCE = f"""
import ctypes, errno, fcntl, os, stat, struct, torch

OWNED = {OWNED!r}
libc = ctypes.CDLL(None, use_errno=True)

def owns():
    return float(os.stat(OWNED).st_uid == os.getuid())

def files_of_its_own():
    found = []
    for folder, _, names in os.walk("/"):
        found += [name for name in names if os.lstat(os.path.join(folder, name)).st_uid == os.getuid()]
    return float(len(found) - (OWNED.rsplit("/")[-1] in found))

def may_write():
    found = 0
    for folder, folders, names in os.walk("/"):
        paths = [os.path.join(folder, name) for name in (*folders, *names)]
        found += sum(os.access(path, os.W_OK) and not os.path.islink(path) for path in paths)
    return float(found)

def marked():
    file, done = os.open(OWNED, os.O_RDONLY), 0
    for mark in (
        lambda: os.utime(OWNED),
        lambda: os.utime(file, (1, 1)),
        lambda: os.chmod(OWNED, 0o600),
        lambda: os.fchmod(file, 0o600),
        lambda: os.chown(OWNED, -1, os.getgid()),
        lambda: os.setxattr(OWNED, "user.note", b"1"),
        lambda: os.rename(OWNED, OWNED + "2"),
        lambda: os.truncate(OWNED, 0),
        lambda: os.open(OWNED, os.O_WRONLY),
        lambda: fcntl.fcntl(file, 1036, struct.pack("Q", 2)),
        lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
        lambda: fcntl.flock(file, fcntl.LOCK_SH),
        lambda: fcntl.ioctl(file, 0x40086602, struct.pack("L", 0x40)),  # FS_IOC_SETFLAGS, no dump
    ):
        try:
            mark()
        except OSError:
            continue
        done += 1
    return float(done)
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceBox]:
    path = tmp_path_factory.mktemp("library") / "owned"
    path.write_text("a file of a library")
    if (uid := uid_for_box()) is not None:
        os.chown(path, uid, uid)
    given = Equipment((), (Bind(str(path), OWNED),), ())
    with NamespaceBox(LIMITS, tmp_path_factory.mktemp("hidden"), given) as opened:
        yield opened


def answer(box: NamespaceBox, name: str) -> float:
    (reply,) = replies(box, LIMITS, SOURCE, Call(name), seconds=30.0)
    assert reply.raised is None, reply.raised
    return reply.outputs[0].tensor.item()


def test_nothing_is_left_on_a_file_that_its_uid_owns(box: NamespaceBox) -> None:
    assert answer(box, "owns") == 1.0
    assert answer(box, "marked") == 0.0


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user may own the libraries, and the box has that user's uid")
def test_no_other_file_belongs_to_a_box_that_root_opens(box: NamespaceBox) -> None:
    assert answer(box, "files_of_its_own") == 0.0


def test_it_can_write_to_its_tmp_its_shared_memory_and_five_devices(box: NamespaceBox) -> None:
    assert answer(box, "may_write") == 7.0


INHERITED = """
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
    (reply,) = replies(box, LIMITS, INHERITED, Call(name, args))
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
