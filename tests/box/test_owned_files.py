"""Internal: only a `NamespaceBox` takes a file of ours. What an attempt inherits, and marks."""

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box import connection, host_processes, zygote_box
from manyheads.box.contents import Bind, Equipment
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from manyheads.box.zygote_box import uid_for_box
from tests.box.conftest import value_of
from tests.witness import parent_of, process_and_descendants

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)
OWNED = "/box/owned"
SOURCE = f"""
import ctypes, errno, fcntl, os, resource, stat, struct, torch

OWNED = {OWNED!r}

def owns():
    return float(os.stat(OWNED).st_uid == os.getuid())

def files_of_its_own():
    found = []
    for folder, _, names in os.walk("/"):
        found += [name for name in names if os.lstat(os.path.join(folder, name)).st_uid == \
os.getuid()]
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

def opened():
    found = []
    for number in range(4096):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        found.append([number, stat.S_IFMT(mode)])
    return torch.tensor(found)

def flags(more):
    before = [fcntl.fcntl(number, fcntl.F_GETFL) for number in (0, 1, 2)]
    for number, flags in enumerate(before):
        fcntl.fcntl(number, fcntl.F_SETFL, flags | more)
    return torch.tensor(before)

def core():
    return torch.tensor([*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, \
0, 0, 0)])
"""
CHARACTERS, PIPE = 0o020000, 0o010000


@pytest.fixture(scope="module")
def own_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceBox]:
    """A box with a file that its uid owns. A test that breaks it leaves a new one to the next."""
    path = tmp_path_factory.mktemp("library") / "owned"
    path.write_text("a file of a library")
    if (uid := uid_for_box()) is not None:
        os.chown(path, uid, uid)
    hidden = tmp_path_factory.mktemp("bound") / "hidden"  # it is empty in the box
    hidden.mkdir()
    hidden.parent.chmod(0o755)
    equipment = Equipment((), (Bind(str(path), OWNED), Bind(str(hidden.parent), "/box/bound")), ())
    with NamespaceBox(LIMITS, hidden, equipment) as opened:
        yield opened


def answer_in_box(own_box: NamespaceBox, name: str, *args: int) -> object:
    return value_of(own_box, LIMITS, SOURCE, *args, name=name, seconds=30.0)


def test_nothing_is_left_on_a_file_that_its_uid_owns(own_box):
    assert answer_in_box(own_box, "owns") == 1.0
    assert answer_in_box(own_box, "marked") == 0.0


@pytest.mark.skipif(
    os.geteuid() != 0,
    reason="an ordinary user may own the libraries, and the box has that user's uid",
)
def test_no_other_file_belongs_to_a_box_that_root_opens(own_box):
    assert answer_in_box(own_box, "files_of_its_own") == 0.0


def test_it_can_write_to_its_tmp_its_shared_memory_and_five_devices(own_box):
    assert answer_in_box(own_box, "may_write") == 7.0


def test_the_null_device_and_two_pipes_are_open_and_no_socket(own_box):
    null_devices = [[number, CHARACTERS] for number in (0, 1, 2)]
    assert answer_in_box(own_box, "opened") == [*null_devices, [64, PIPE], [65, PIPE]]


def test_flags_that_one_attempt_sets_are_not_the_next_ones(own_box):
    flags = answer_in_box(own_box, "flags", os.O_APPEND | os.O_NONBLOCK)
    assert answer_in_box(own_box, "flags", 0) == flags


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read the warm process's mappings")
def test_no_mapping_is_shared_and_writable(own_box):
    warm = process_and_descendants(own_box._reaper.pid)[-1]
    maps = Path(f"/proc/{warm}/maps").read_text()
    assert "libtorch" in maps
    assert [line for line in maps.splitlines() if line.split()[1][1::2] == "ws"] == []


def test_no_core_of_it_is_dumped_to_a_file_or_to_a_handler(own_box):
    """The core limit is 1, because a handler in the core pattern gets a core at limit 0."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    assert answer_in_box(own_box, "core") == [most, most, 0]  # and the process is not dumpable


PARTS = ["the reaper", "bubblewrap outside", "bubblewrap inside", "the zygote"]


@pytest.mark.parametrize("victim", PARTS)
def test_all_of_a_box_ends_when_a_part_is_killed(own_box, victim):
    family, cgroup = process_and_descendants(own_box._reaper.pid), own_box._cgroup
    assert len(family) == len(PARTS)
    os.kill(family[PARTS.index(victim)], signal.SIGKILL)
    while any(parent_of(pid) for pid in family):
        time.sleep(0.01)
    own_box.attempt(LIMITS).close()
    assert len(process_and_descendants(own_box._reaper.pid)) == 4
    assert not any(folder.exists() for folder in cgroup.folders)


def test_a_reaper_waits_for_the_judge_alone(own_box):
    """Ctrl-C and a polite end reach all processes; the reaper still has a cgroup to remove."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        own_box._reaper.send_signal(number)
    own_box.attempt(LIMITS).close()
    assert own_box._reaper.poll() is None
    assert os.getsid(own_box._reaper.pid) == own_box._reaper.pid


def test_of_the_cgroups_whose_judge_has_ended_the_empty_ones_are_removed(tmp_path, monkeypatch):
    """Folders of the test's own stand for cgroups, which only some users can make."""
    monkeypatch.setattr(host_processes, "ROOT", tmp_path)
    gone = subprocess.Popen(["true"])
    # ended, and not waited for: init may take its time
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    numbers = f"{gone.pid}-1", f"{gone.pid}-2", f"{os.getpid()}-3"
    empty, full, alive = (tmp_path / "memory" / f"manyheads-{suffix}" for suffix in numbers)
    for folder in (empty, full / "child", alive):
        folder.mkdir(parents=True)
    host_processes.remove_abandoned()
    gone.wait()
    assert [folder.exists() for folder in (empty, full, alive)] == [False, True, True]


def supervisor_and_attempts(own_box: NamespaceBox) -> list[int]:
    """Return the pids below the reaper, bubblewrap and its init."""
    return process_and_descendants(own_box._reaper.pid)[3:]


@pytest.fixture
def stopped(own_box: NamespaceBox, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """A supervisor that is stopped, as if the kernel took its time, and an attempt to be ended."""
    monkeypatch.setattr(connection, "GRACE", 0.0)
    attempt = own_box.attempt(LIMITS)
    attempt.ask(Load("", "attempt.py"), 20.0)
    supervisor, attempt_pid = supervisor_and_attempts(own_box)
    os.kill(supervisor, signal.SIGSTOP)
    attempt.close()
    return supervisor, attempt_pid


def assert_answers(own_box: NamespaceBox) -> None:
    attempt = own_box.attempt(LIMITS)
    assert attempt.ask(Load("def f(): return 1.0", "attempt.py"), 20.0).raised is None
    assert attempt.ask(Call("f"), 20.0).raised is None
    attempt.close()


def test_the_next_attempt_waits_for_the_end_of_the_last(own_box, stopped):
    supervisor, attempt_pid = stopped
    assert parent_of(attempt_pid)
    threading.Timer(0.5, os.kill, (supervisor, signal.SIGCONT)).start()
    assert_answers(own_box)
    assert not parent_of(attempt_pid)
    assert supervisor_and_attempts(own_box)[0] == supervisor, "the box was replaced without need"


def test_a_box_whose_attempt_never_ends_is_replaced(own_box, stopped, monkeypatch):
    monkeypatch.setattr(zygote_box, "SLOW_END_SECONDS", 0.1)
    assert_answers(own_box)
    assert supervisor_and_attempts(own_box)[0] != stopped[0]
