"""The `namespaces` level: bubblewrap as an unprivileged uid, and in it a zygote that forks
attempts.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from . import reaper
from .cgroup import Cgroup, Plan, plan_cgroup
from .contents import SITE, WORKER, WORKER_PARENT, contents, places_in_box
from .names import BoxUnavailable, Level
from .nvidia import Equipment
from .warm import WarmBox, refuse_alone, uid_for_box
from .worker.limits import Limits

_UNSHARE = (
    "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try"
).split()
# CAP_SYS_ADMIN within the box alone: the warm process makes PID namespaces. Attempts give it up
# with their user namespace.
_BOUND = (
    "--die-with-parent --new-session --cap-drop ALL --cap-add CAP_SYS_ADMIN --clearenv "
    "--hostname box"
).split()
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # see process.ENVIRONMENT
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # see SYSTEM_FILES
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
}


class NamespaceBox(WarmBox):
    """A warm box.

    `attempt` forks a fresh process with namespaces of its own in a few milliseconds.
    """

    level = Level.NAMESPACES

    def __init__(self, limits: Limits, hidden: Path, equipment: Equipment | None = None) -> None:
        """Start it.

        `hidden`: a folder that must not be seen inside, wherever it is. `given`: what it holds
            besides.

        Raises BoxUnavailable, with the command that would help.
        """
        self._limits, self._hidden, self._given = limits, hidden, equipment or Equipment()
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
                reaper.command(request),
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
        self._cgroup.remove()  # only if the reaper was killed; else it has done so


def launch_request(
    bwrap: str, control_fd: int, uid: int | None, hidden: Path, cgroups: Plan, equipment: Equipment
) -> dict[str, object]:
    """Return what the reaper is to do."""
    inside = contents()
    binds = (*inside.binds, *equipment.binds)
    arguments = [*_UNSHARE, *_BOUND]
    for i, bind in enumerate(binds):
        arguments += ["--ro-bind", f"{{{i}}}", bind.target]
    # read-only: or attempts leave files there for others
    empty = (*inside.emptied, *places_in_box(hidden, binds))
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
    # without collections while it imports: they would find nothing, and take a fifth of its time
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
