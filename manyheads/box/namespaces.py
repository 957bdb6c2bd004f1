"""The `namespaces` level: bubblewrap as an unprivileged uid, with a zygote that forks attempts.

This module works out bubblewrap's arguments (`launch_request`). The reaper in `host_processes`
starts it with them. On a GPU, one box at a time holds the lock of the device. CUDA starts in the
process of an attempt, not in the zygote.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from . import host_processes
from .connection import AttemptEnded, Connection
from .contents import (
    SITE,
    WORKER,
    WORKER_PARENT,
    Driver,
    Equipment,
    Gpu,
    contents,
    equipment,
    find_driver,
    gpu_obstacles,
    paths_in_box,
    separate_gpus,
)
from .host_processes import Cgroup, Plan, plan_cgroup
from .level_and_device_names import BoxUnavailable, Level
from .worker.limits import CUDA_SECONDS, Limits
from .worker.messages import Call, Load
from .zygote_box import WarmBox, refuse_alone, uid_for_box

_UNSHARE = (
    "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try"
).split()
# The zygote needs CAP_SYS_ADMIN in the box's user namespace to make PID namespaces. An attempt
# loses it when it enters its own user namespace.
_BOUND = (
    "--die-with-parent --new-session --cap-drop ALL --cap-add CAP_SYS_ADMIN --clearenv "
    "--hostname box"
).split()
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # see without_namespaces.ENVIRONMENT
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # see contents.SYSTEM_FILES
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
}


class NamespaceBox(WarmBox):
    """A warm box. It forks each attempt in a few milliseconds, into new namespaces."""

    level = Level.NAMESPACES

    def __init__(self, limits: Limits, hidden: Path, equipment: Equipment | None = None) -> None:
        """Start the box. Raises BoxUnavailable, with the command that would help.

        Args:
            limits: of each attempt.
            hidden: a folder that must not be visible in the box at any path.
            equipment: additional contents of the box.
        """
        self._limits = limits
        self._hidden = hidden
        self._given = equipment or Equipment()
        self._start()

    def _start(self) -> None:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            lacking = "bubblewrap (the command bwrap) is not installed"
            raise BoxUnavailable(f"{lacking}. Next: sudo apt-get install bubblewrap")
        refuse_alone()
        planned = plan_cgroup(self._limits)
        self._cgroup = Cgroup(tuple(map(Path, planned)))
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as errors:
            request = launch_request(
                bwrap, theirs.fileno(), uid_for_box(), self._hidden, planned, self._given
            )
            self._reaper = subprocess.Popen(
                host_processes.command(request),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={},
            )
            theirs.close()
            if not self._has_started():
                self._close()
                errors.seek(0)
                error_lines = errors.read(2000).decode(errors="replace").strip().splitlines() or [
                    "no message"
                ]
                raise BoxUnavailable(
                    f"a box of level namespaces does not start here ({error_lines[-1]}). Next:"
                    " course doctor"
                )

    def _is_there(self) -> bool:
        return self._reaper.poll() is None

    def _close(self) -> None:
        self._control.close()
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()
        self._cgroup.remove()  # the reaper has removed the cgroup, unless it was killed


def launch_request(
    bwrap: str, control_fd: int, uid: int | None, hidden: Path, cgroups: Plan, equipment: Equipment
) -> dict[str, object]:
    """Return the request to the reaper; see `host_processes.command`.

    Args:
        bwrap: the path of bubblewrap.
        control_fd: the zygote's end of the control socket.
        uid: the uid of the box, or None for this process's uid.
        hidden: a folder that is empty in the box, at every path at which a bind shows it.
        cgroups: the cgroup of the box.
        equipment: additional contents of the box.
    """
    inside = contents()
    binds = (*inside.binds, *equipment.binds)
    arguments = [*_UNSHARE, *_BOUND]
    for i, bind in enumerate(binds):
        arguments += ["--ro-bind", f"{{{i}}}", bind.target]
    # These folders are read-only, so that attempts cannot leave files for others in them.
    empty = (*inside.emptied, *paths_in_box(hidden, binds))
    arguments += [
        argument
        for does in ("--tmpfs", "--remount-ro")
        for path in empty
        for argument in (does, path)
    ]
    for says, stands in inside.symlinks:
        arguments += ["--symlink", says, stands]
    arguments += ["--proc", "/proc", "--tmpfs", "/dev"]
    for name in ("null", "zero", "full", "random", "urandom"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for i, device in enumerate(equipment.devices, len(binds)):
        arguments += ["--dev-bind", f"{{{i}}}", device.target]
    arguments += ["--dir", "/dev/shm", "--remount-ro", "/dev", "--dir", "/tmp", "--remount-ro", "/"]
    variables = {**_ENVIRONMENT, **dict(equipment.environment)}
    folders = [
        folder for folder in (inside.python_library, variables.get("LD_LIBRARY_PATH", "")) if folder
    ]
    if folders:
        variables["LD_LIBRARY_PATH"] = ":".join(folders)
    for name, value in variables.items():
        arguments += ["--setenv", name, value]
    # While modules are imported, garbage collections find nothing and take a fifth of the time.
    start = (
        f"import gc, sys; gc.disable(); sys.path[:0] = ['{WORKER_PARENT}', '{SITE}']; "
        f"from {WORKER}.zygote import main; main({control_fd}, '{Level.NAMESPACES}')"
    )
    return {
        "bwrap": bwrap,
        "arguments": arguments,
        "command": [inside.python, "-I", "-S", "-B", "-c", start],
        "sources": [bind.source for bind in (*binds, *equipment.devices)],
        "uid": uid,
        "cgroups": cgroups,
    }


_SOURCE = """
import torch

def starts():
    with torch.enable_grad():  # calls run without gradients
        x = torch.ones(64, 64, device="cuda", requires_grad=True)
        (x @ x).sum().backward()
    return x.grad.sum()
"""
_ANSWER = 2 * 64.0**3  # each entry of x is in 2 · 64 products


class GpuLock:
    """An exclusive lock on a GPU until it is released or this process ends.

    The lock is an abstract socket address, which only one process on this machine can bind.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        """Lock the first GPU that is free, as `gpu`. Raises BoxUnavailable if all are locked."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for gpu in gpus:
            try:
                self._socket.bind(f"\0manyheads-{gpu.node[:80]}")
            except OSError:
                continue
            self.gpu = gpu
            return
        self._socket.close()
        problem = "another grader uses the GPU, which takes one attempt at a time"
        raise BoxUnavailable(f"{problem}. Next: run the same command again when that one has ended")

    def release(self) -> None:
        """Let other processes have the GPU."""
        self._socket.close()


class GpuBox(NamespaceBox):
    """A box with a GPU.

    CUDA does not survive a fork. So the zygote never uses it, and each attempt starts it anew.
    """

    def __init__(self, limits: Limits, hidden: Path, driver: Driver | None = None) -> None:
        """Lock a GPU, and start a box that can use it.

        Raises BoxUnavailable if a part of the driver is missing, if other boxes use all GPUs, or if
        the box does not start.

        Args:
            limits: of each attempt.
            hidden: a folder that must not be visible in the box at any path.
            driver: the driver and the GPUs. None means the driver of this machine.
        """
        driver = driver or find_driver()
        for says, command in gpu_obstacles(driver, uid_for_box()):
            raise BoxUnavailable(f"{says}. Next: {command}")
        self._lock = GpuLock(separate_gpus(driver))
        try:
            super().__init__(limits, hidden, equipment(driver, self._lock.gpu))
        except BaseException:
            self._lock.release()
            raise

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process in which CUDA has started.

        Raises BoxUnavailable if CUDA or the process does not start.
        """
        connection = super().attempt(limits)
        start_cuda(connection)
        return connection

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        super().__exit__(exc_type, error, tb)
        self._lock.release()


def start_cuda(connection: Connection) -> None:
    """Start CUDA in a process that has loaded no student code, and check a small computation.

    This happens before student code is loaded, so that the judge does not count the time as the
    attempt's. On failure, the process is ended, and BoxUnavailable is raised, with CUDA's message
    if there is one.
    """
    try:
        connection.ask(Load(_SOURCE, "starts.py"), CUDA_SECONDS)
        reply = connection.ask(Call("starts"), CUDA_SECONDS)
    except AttemptEnded as ended:
        raise BoxUnavailable(
            f"CUDA does not start in the box ({ended}). Next: course doctor"
        ) from None
    answer = reply.outputs[0] if reply.outputs else None
    if (
        answer is None
        or answer.device != "cuda"
        or answer.tensor is None
        or answer.tensor.item() != _ANSWER
    ):
        connection.close()
        problem = (
            (reply.raised.message.strip() or reply.raised.type)
            if reply.raised
            else "it computed something else"
        )
        raise BoxUnavailable(
            f"CUDA does not start in the box ({problem.splitlines()[0]}). Next: course doctor"
        )
