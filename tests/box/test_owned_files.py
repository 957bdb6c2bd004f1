"""Internal: only a `NamespaceBox` accepts a file of the test. An attempt leaves nothing behind.

The next attempt finds no trace in files, descriptors, memory mappings or processes.
"""

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
    owned = []
    for folder, _, names in os.walk("/"):
        owned += [name for name in names if os.lstat(os.path.join(folder, name)).st_uid == \
os.getuid()]
    return float(len(owned) - (OWNED.rsplit("/")[-1] in owned))

def may_write():
    writable = 0
    for folder, folders, names in os.walk("/"):
        paths = [os.path.join(folder, name) for name in (*folders, *names)]
        writable += sum(os.access(path, os.W_OK) and not os.path.islink(path) for path in paths)
    return float(writable)

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
    descriptors = []
    for number in range(4096):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        descriptors.append([number, stat.S_IFMT(mode)])
    return torch.tensor(descriptors)

def flags(more):
    before = [fcntl.fcntl(number, fcntl.F_GETFL) for number in (0, 1, 2)]
    for number, flags in enumerate(before):
        fcntl.fcntl(number, fcntl.F_SETFL, flags | more)
    return torch.tensor(before)

def core():
    return torch.tensor([*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, \
0, 0, 0)])
"""
CHARACTER_DEVICE, PIPE = 0o020000, 0o010000  # file types, as stat.S_IFMT returns them


@pytest.fixture(scope="module")
def own_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceBox]:
    """Yield a box with a file that its uid owns. A box that a test kills starts again by itself."""
    path = tmp_path_factory.mktemp("library") / "owned"
    path.write_text("a file of a library")
    if (uid := uid_for_box()) is not None:
        os.chown(path, uid, uid)
    hidden = tmp_path_factory.mktemp("bound") / "hidden"  # the box shows it as an empty folder
    hidden.mkdir()
    hidden.parent.chmod(0o755)
    equipment = Equipment((), (Bind(str(path), OWNED), Bind(str(hidden.parent), "/box/bound")), ())
    with NamespaceBox(LIMITS, hidden, equipment) as opened:
        yield opened


def answer_in_box(own_box: NamespaceBox, name: str, *args: int) -> object:
    """Return what the function of SOURCE with this name returns in the box."""
    return value_of(own_box, LIMITS, SOURCE, *args, name=name, seconds=30.0)


def test_an_attempt_cannot_mark_a_file_that_its_uid_owns(own_box):
    assert answer_in_box(own_box, "owns") == 1.0
    assert answer_in_box(own_box, "marked") == 0.0


@pytest.mark.skipif(
    os.geteuid() != 0,
    reason="an ordinary user may own the libraries, and the box has that user's uid",
)
def test_the_uid_of_a_box_owns_no_other_file(own_box):
    assert answer_in_box(own_box, "files_of_its_own") == 0.0


def test_an_attempt_can_write_to_seven_paths(own_box):
    """They are /tmp, /dev/shm and five devices."""
    assert answer_in_box(own_box, "may_write") == 7.0


def test_an_attempt_inherits_only_null_devices_and_two_pipes(own_box):
    null_devices = [[number, CHARACTER_DEVICE] for number in (0, 1, 2)]
    assert answer_in_box(own_box, "opened") == [*null_devices, [64, PIPE], [65, PIPE]]


def test_flags_of_descriptors_do_not_reach_the_next_attempt(own_box):
    flags = answer_in_box(own_box, "flags", os.O_APPEND | os.O_NONBLOCK)
    assert answer_in_box(own_box, "flags", 0) == flags


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read the warm process's mappings")
def test_no_memory_mapping_is_shared_and_writable(own_box):
    warm = process_and_descendants(own_box._reaper.pid)[-1]
    maps = Path(f"/proc/{warm}/maps").read_text()
    assert "libtorch" in maps
    assert [line for line in maps.splitlines() if line.split()[1][1::2] == "ws"] == []


def test_an_attempt_cannot_dump_a_core(own_box):
    """The core limit is 1, because a handler in the core pattern gets a core at limit 0."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    core_limit = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    not_dumpable = 0
    assert answer_in_box(own_box, "core") == [core_limit, core_limit, not_dumpable]


PROCESSES = ["the reaper", "bubblewrap outside", "bubblewrap inside", "the zygote"]


@pytest.mark.parametrize("victim", PROCESSES)
def test_all_processes_of_a_box_end_when_one_is_killed(own_box, victim):
    box_pids, cgroup = process_and_descendants(own_box._reaper.pid), own_box._cgroup
    assert len(box_pids) == len(PROCESSES)
    os.kill(box_pids[PROCESSES.index(victim)], signal.SIGKILL)
    while any(parent_of(pid) for pid in box_pids):
        time.sleep(0.01)
    own_box.attempt(LIMITS).close()
    assert len(process_and_descendants(own_box._reaper.pid)) == len(PROCESSES)
    assert not any(folder.exists() for folder in cgroup.folders)


def test_a_reaper_ends_only_with_the_judge(own_box):
    """Ctrl-C and SIGTERM reach all processes, but the reaper must still remove a cgroup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        own_box._reaper.send_signal(number)
    own_box.attempt(LIMITS).close()
    assert own_box._reaper.poll() is None
    assert os.getsid(own_box._reaper.pid) == own_box._reaper.pid


def test_empty_cgroups_of_ended_judges_are_removed(tmp_path, monkeypatch):
    """Ordinary folders stand in for cgroups, which only some users can make."""
    monkeypatch.setattr(host_processes, "ROOT", tmp_path)
    ended_judge = subprocess.Popen(["true"])
    # it has ended but stays a zombie, so its pid cannot be used again
    os.waitid(os.P_PID, ended_judge.pid, os.WEXITED | os.WNOWAIT)
    numbers = f"{ended_judge.pid}-1", f"{ended_judge.pid}-2", f"{os.getpid()}-3"
    empty_folder, used_folder, own_folder = (
        tmp_path / "memory" / f"manyheads-{suffix}" for suffix in numbers
    )
    for folder in (empty_folder, used_folder / "child", own_folder):
        folder.mkdir(parents=True)
    host_processes.remove_abandoned()
    ended_judge.wait()
    assert not empty_folder.exists()
    assert used_folder.exists()
    assert own_folder.exists()


def supervisor_and_attempts(own_box: NamespaceBox) -> list[int]:
    """Return the pids below the reaper, bubblewrap and its init."""
    return process_and_descendants(own_box._reaper.pid)[3:]


@pytest.fixture
def stopped_supervisor(own_box: NamespaceBox, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the pids of a stopped supervisor, and of an attempt that it therefore cannot end."""
    monkeypatch.setattr(connection, "GRACE", 0.0)
    attempt = own_box.attempt(LIMITS)
    attempt.ask(Load("", "attempt.py"), 20.0)
    supervisor, attempt_pid = supervisor_and_attempts(own_box)
    os.kill(supervisor, signal.SIGSTOP)
    attempt.close()
    return supervisor, attempt_pid


def assert_answers(own_box: NamespaceBox) -> None:
    """Check that a new attempt in the box answers a call."""
    attempt = own_box.attempt(LIMITS)
    assert attempt.ask(Load("def f(): return 1.0", "attempt.py"), 20.0).raised is None
    assert attempt.ask(Call("f"), 20.0).raised is None
    attempt.close()


def test_the_next_attempt_waits_until_the_last_has_ended(own_box, stopped_supervisor):
    supervisor, attempt_pid = stopped_supervisor
    assert parent_of(attempt_pid)
    threading.Timer(0.5, os.kill, (supervisor, signal.SIGCONT)).start()
    assert_answers(own_box)
    assert not parent_of(attempt_pid)
    assert supervisor_and_attempts(own_box)[0] == supervisor, "the box need not be replaced"


def test_a_box_with_an_attempt_that_does_not_end_is_replaced(
    own_box, stopped_supervisor, monkeypatch
):
    monkeypatch.setattr(zygote_box, "SLOW_END_SECONDS", 0.1)
    assert_answers(own_box)
    assert supervisor_and_attempts(own_box)[0] != stopped_supervisor[0]
