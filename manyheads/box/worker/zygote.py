"""The zygote of a box: a process that has imported torch and forks one process for each attempt.

Its supervisor starts each attempt, ends it, and reports how it ended. Every attempt has a lifeline,
a socket to the judge. When the judge closes the lifeline or ends, the supervisor kills the attempt.
At level `namespaces`, the attempt is PID 1 of its PID namespace, so all processes that it started
end too. At the other levels, the supervisor kills the attempt's process group.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import select
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType

import torch
import torch._compile

from . import attempt, confine, seccomp
from .limits import Limits, apply_rlimits, measure_address_space, time_files
from .wire import READY

# Runs in the attempt's process, with the pipes to receive from and to send to; never returns.
RunAttempt = Callable[[Limits, int, int], None]


@dataclass(frozen=True)
class _AttemptProcess:
    """An attempt whose process runs."""

    pid: int
    ended: int  # a pidfd: readable when the process has ended
    lifeline: socket.socket
    # the working folder, if the attempt has no private /tmp
    folder: tempfile.TemporaryDirectory[str] | None


class Supervisor:
    """Serves start requests from the control socket until it closes, then ends all attempts."""

    def __init__(
        self, control: socket.socket, run: RunAttempt, namespaces: confine.PidNamespaces | None
    ) -> None:
        """Prepare to serve, without any attempt yet.

        Args:
            control: the socket on which the judge requests attempts.
            run: runs an attempt in the forked process.
            namespaces: makes a PID namespace for each attempt, or None if attempts share this one.
        """
        self._control, self._run, self._namespaces = control, run, namespaces
        self._attempts: list[_AttemptProcess] = []
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Serve until the judge closes the control socket, then kill all attempts."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            for child in list(self._attempts):
                if child.ended in ready:
                    self._reap(child)
                elif child.lifeline.fileno() in ready:
                    self._kill(child)
            if self._control.fileno() in ready and not self._accept():
                break
        for child in list(self._attempts):
            self._kill(child)
            self._reap(child)

    def _accept(self) -> bool:
        """Start the attempt that the judge requests, and return True.

        Returns False if the judge has closed the socket.
        """
        request, descriptors, _, _ = socket.recv_fds(self._control, 4096, 3)
        if request:
            receives, sends, lifeline = descriptors
            self._start(
                Limits(**json.loads(request)), receives, sends, socket.socket(fileno=lifeline)
            )
        return bool(request)

    def _start(self, limits: Limits, receives: int, sends: int, lifeline: socket.socket) -> None:
        """Fork a process that runs an attempt, and watch the process and its lifeline.

        Without namespaces, the process runs in a new temporary folder.
        """
        folder = None if self._namespaces else tempfile.TemporaryDirectory(prefix="course-check-")
        if self._namespaces is not None:
            self._namespaces.prepare_next()
        pid = os.fork()
        if pid == 0:
            if folder is not None:
                os.chdir(folder.name)
            self._run(limits, receives, sends)
        os.close(receives)
        os.close(sends)
        _send_time_files(lifeline, pid)
        attempt = _AttemptProcess(pid, os.pidfd_open(pid), lifeline, folder)
        self._attempts.append(attempt)
        self._poll.register(attempt.ended, select.POLLIN)
        self._poll.register(attempt.lifeline, select.POLLIN)

    def _kill(self, attempt: _AttemptProcess) -> None:
        """Kill the attempt. `_reap` follows when the kernel reports its end."""
        self._poll.unregister(attempt.lifeline)
        # the child has not been waited for, so its pid cannot have been reused
        os.kill(attempt.pid, signal.SIGKILL)

    def _reap(self, attempt: _AttemptProcess) -> None:
        """Wait for an attempt that has ended, clean up, and report its wait status to the judge."""
        self._attempts.remove(attempt)
        status = os.waitpid(attempt.pid, 0)[1]
        self._poll.unregister(attempt.ended)
        os.close(attempt.ended)
        if attempt.folder is not None:
            # without a PID namespace its children do not end with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(attempt.pid, signal.SIGKILL)
            attempt.folder.cleanup()
        with contextlib.suppress(KeyError):
            self._poll.unregister(attempt.lifeline)
        with attempt.lifeline, contextlib.suppress(OSError):
            attempt.lifeline.sendall(str(status).encode())


def _send_time_files(lifeline: socket.socket, pid: int) -> None:
    """Report the fork to the judge, with the files that count the process's time, if any."""
    files = time_files(pid)
    with contextlib.suppress(OSError):  # the judge is gone
        socket.send_fds(lifeline, [b"1"], files)
    for file in files:
        os.close(file)


# New objects before a collection starts. An attempt makes several times as many, with few cycles.
_COLLECT_AFTER = 20_000


def main(control_fd: int, isolation: str) -> None:
    """Prepare this process, report READY, and serve start requests until the control socket closes.

    Garbage collection is on from then on. The caller may have switched it off to import modules
    fast. All output of this process is discarded.

    Args:
        control_fd: the zygote's end of the control socket.
        isolation: the level of the box.
    """
    control = socket.socket(fileno=control_fd)
    torch.set_num_threads(1)
    if isolation == "namespaces":
        _prepare_for_many()
    gc.enable()
    measure_address_space()
    attempt.silence()
    namespaces = confine.PidNamespaces() if isolation == "namespaces" else None
    supervisor = Supervisor(control, partial(_run, isolation), namespaces)
    control.sendall(READY)
    supervisor.serve()


def _prepare_for_many() -> None:
    """Make preparations that pay off only for many attempts. Needs the rights of `seal_devices`."""
    confine.seal_devices()
    make_meta_ready()
    # This reads /proc/cpuinfo once for all attempts. In an attempt, /proc is empty.
    torch.ones(1).half()
    with contextlib.suppress(KeyError):  # on an unknown machine `install` raises the error
        seccomp.program(platform.machine())
    gc.freeze()  # imported modules hold almost no garbage
    gc.set_threshold(_COLLECT_AFTER)


def make_meta_ready() -> None:
    """Prepare the meta device before the fork, so that its first operation is fast.

    Without this, the first operation imports 800 modules, which takes over a second in every fresh
    process. Some of these modules are imported here. The others belong to torch._dynamo, which the
    wrapper of `_disable_dynamo` imports at its first call. It is needed only under torch.compile,
    so the wrapped functions are called without the wrapper. If a version of torch has another
    wrapper, that wrapper stays.
    """
    import torch.fx.experimental.symbolic_shapes

    constants = torch._compile._disable_dynamo.__code__.co_consts
    wrappers = {
        code
        for code in constants
        if isinstance(code, CodeType) and "disable_fn" in code.co_varnames
    }
    for wrapper in gc.get_objects():
        if type(wrapper) is FunctionType and wrapper.__code__ in wrappers:
            cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents if "fn" in cells else None
            if type(hidden) is FunctionType:
                vars(hidden)["__dynamo_disable"] = hidden


def _run(isolation: str, limits: Limits, receives: int, sends: int) -> None:
    """Confine this process, and serve an attempt in it. Never returns: the process ends.

    Args:
        isolation: the level of the box.
        limits: of the attempt.
        receives: the pipe from the judge.
        sends: the pipe to the judge.
    """
    status = 1
    try:
        os.setsid()  # a process group spans PID namespaces: kill(0, …) would reach the zygote
        # The descriptors are pipes. A socket pair would belong to the judge's network namespace,
        # and would show the host's addresses.
        receives, sends = attempt.hide_descriptors(receives, sends)
        # Again, because a forked process shares open files with the zygote. An attempt could set
        # flags of these files, and other attempts could read them.
        attempt.silence()
        if isolation == "namespaces":
            confine.enter_namespaces(limits)
            confine.drop_privileges(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(os.fdopen(receives, "rb"), os.fdopen(sends, "wb"))
        status = 0
    finally:
        os._exit(status)
