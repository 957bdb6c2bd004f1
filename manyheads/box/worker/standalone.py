"""The process of one attempt at the `process` level: a fresh interpreter, with rlimits where the system has them."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Collection, Mapping
from typing import Any


def main(descriptor: int | None, limits: Mapping[str, Any], modules: Collection[str]) -> None:
    """Serve one attempt.

    Args:
        descriptor: the inherited connection; None means that this process connects.
        limits: the fields of Limits.
        modules: what the attempt may import.
    """
    inherited = None if descriptor is None else socket.socket(fileno=descriptor)
    connection = inherited or _connect()  # before the slow import of torch, because the judge waits for the connection

    gc.disable()  # collections would find nothing while modules are imported, and take a fifth of that time
    import torch

    from . import attempt
    from .imports import allow_only
    from .limits import Limits

    gc.enable()
    if inherited:
        connection = socket.socket(fileno=attempt.hide_descriptors(inherited.detach())[0])
        threading.Thread(target=_end_with_judge, args=(connection,), daemon=True).start()
    torch.set_num_threads(1)
    attempt.silence()
    with contextlib.suppress(ModuleNotFoundError):  # Windows has no rlimits: only the deadline limits the attempt
        from .rlimits import apply_rlimits, measure_address_space

        measure_address_space()
        apply_rlimits(Limits(**limits))
    allow_only(modules)
    attempt.serve(connection)


def _end_with_judge(connection: socket.socket) -> None:
    """Kill this session when the judge has hung up or was killed, also in the middle of code that never returns."""
    hang_up = select.poll()
    hang_up.register(connection, 0)  # POLLHUP is reported in any case
    hang_up.poll()
    os.killpg(0, signal.SIGKILL)


def _connect() -> socket.socket:
    """Connect to the port that standard input names, and send the password that it holds."""
    port, password = sys.stdin.readline().split()
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(bytes.fromhex(password))
    return connection
