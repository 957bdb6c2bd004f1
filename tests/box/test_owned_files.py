"""What a box shows belongs to others; and what its uid owns, as an ordinary user's libraries, it cannot mark."""

import os
from collections.abc import Iterator

import pytest

from manyheads.box.contents import Bind
from manyheads.box.namespaces import NamespaceBox, uid_for_box
from manyheads.box.nvidia import Equipment
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from tests.make import replies

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
