"""The warm process of a box: it has imported torch, and forks. Every attempt is one fork, in namespaces of its own."""

from __future__ import annotations

import gc
import os
import socket
from functools import partial

import torch

from . import attempt, confine, pages
from .keeper import Keeper
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
    keeper = Keeper(control, partial(_run, isolation), confine.PidNamespaces() if isolation == "namespaces" else None)
    control.sendall(READY)
    keeper.serve()


def _prepare_for_many() -> None:
    """What a single check would not win back."""
    from .meta import make_ready

    make_ready()
    if not os.path.exists("/dev/nvidiactl"):  # a gradient asks CUDA for its devices, and then no fork can use them
        from .rehearsal import rehearse

        rehearse()
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


def _run(isolation: str, limits: Limits, connection_fd: int) -> None:
    """An attempt's process: never returns."""
    status = 1
    try:
        os.setsid()  # a process group reaches across PID namespaces: kill(0, …) would meet the zygote
        connection = _private(socket.socket(fileno=connection_fd))
        if isolation == "namespaces":
            confine.die_first()
            confine.own_namespaces(limits)
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
