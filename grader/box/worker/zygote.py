"""The warm process of a box: it has imported torch, runs no operation, and forks.

For every attempt it forks a *keeper*, which makes namespaces and forks the
attempt itself as PID 1 of a fresh PID namespace. The keeper holds a lifeline to
the judge: when the judge closes it, or dies, the keeper kills PID 1, and with it
the kernel kills whatever the attempt left running. When the attempt ends by
itself the keeper says how, over the lifeline: the wait status as a decimal number.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import select
import signal
import socket
import tempfile

import torch

from . import attempt, confine, pages
from .limits import Limits, apply_rlimits, measure_address_space

READY = b"ready"


def main(control_fd: int, isolation: str) -> None:
    """Serve start requests on the control socket until it closes."""
    control = socket.socket(fileno=control_fd)
    torch.set_num_threads(1)
    if isolation == "namespaces":
        _prepare_for_many()
    measure_address_space()
    attempt.silence()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the kernel
    control.sendall(READY)
    while True:
        request, descriptors = _receive(control)
        if not request:
            return
        if os.fork() == 0:
            control.close()
            _keep(Limits(**json.loads(request)), isolation, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _prepare_for_many() -> None:
    """What a single check would not win back."""
    from .meta import make_ready

    make_ready()
    gc.collect()
    gc.freeze()
    pages.collapse()


def alone(connection_fd: int, limits: Limits) -> None:
    """The whole of the `process` level: this process is the attempt, bound by rlimits alone."""
    connection = _private(socket.socket(fileno=connection_fd))
    torch.set_num_threads(1)
    measure_address_space()
    attempt.silence()
    apply_rlimits(limits)
    attempt.serve(connection)


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    """One request and the two descriptors that came with it."""
    descriptors = array.array("i")
    request, ancillary, _, _ = control.recvmsg(4096, socket.CMSG_LEN(2 * descriptors.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return request, list(descriptors)


def _keep(limits: Limits, isolation: str, connection_fd: int, lifeline_fd: int) -> None:
    """The keeper: never returns."""
    lifeline = socket.socket(fileno=lifeline_fd)
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if isolation == "namespaces":
            confine.die_first()
            confine.own_namespaces(limits)
        folder = None if isolation == "namespaces" else tempfile.TemporaryDirectory(prefix="course-check-")
        child = os.fork()
        if child == 0:
            lifeline.close()
            if folder is not None:
                os.chdir(folder.name)
            _run(limits, isolation, connection_fd)
        os.close(connection_fd)
        status = _outlive(child, lifeline)
        if folder is not None:
            with contextlib.suppress(ProcessLookupError):  # no PID namespace that ends with the attempt
                os.killpg(child, signal.SIGKILL)
            folder.cleanup()
        lifeline.sendall(str(status).encode())
    except BaseException as error:
        lifeline.sendall(f"keeper: {error}".encode())
    finally:
        os._exit(0)


def _outlive(child: int, lifeline: socket.socket) -> int:
    """Wait for the attempt's end, or end it when the judge hangs up; its wait status."""
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, lifeline.fileno()], [], [])
    if lifeline.fileno() in ready:
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _run(limits: Limits, isolation: str, connection_fd: int) -> None:
    """The attempt's process: never returns."""
    status = 1
    try:
        os.setsid()  # a process group reaches across PID namespaces: kill(0, …) would meet the zygote
        connection = _private(socket.socket(fileno=connection_fd))
        if isolation == "namespaces":
            confine.bind_down(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(connection)
        status = 0
    finally:
        os._exit(status)


def _private(connection: socket.socket) -> socket.socket:
    """The connection under a number that no student code closes by accident, all other descriptors shut."""
    number = 64
    if connection.fileno() != number:
        os.dup2(connection.fileno(), number, inheritable=False)
        connection.detach()
    os.closerange(3, number)
    os.closerange(number + 1, 1024)
    return socket.socket(fileno=number)
