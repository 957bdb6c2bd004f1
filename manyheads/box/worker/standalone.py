"""The process of one attempt at the `process` level: a fresh interpreter, bound by rlimits where there are any."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Mapping
from typing import Any


def main(descriptor: int | None, limits: Mapping[str, Any]) -> None:
    """`descriptor`: the connection, where it was inherited; None where we call back. `limits`: the fields of Limits."""
    inherited = None if descriptor is None else socket.socket(fileno=descriptor)
    connection = inherited or _called_back()  # before torch is imported, which takes time: somebody waits for the call

    import torch

    from . import attempt
    from .limits import Limits

    if inherited:
        connection = attempt.private(inherited)
    torch.set_num_threads(1)
    attempt.silence()
    with contextlib.suppress(ModuleNotFoundError):  # Windows has no rlimits: there the deadline alone binds
        from .rlimits import apply_rlimits, measure_address_space

        measure_address_space()
        apply_rlimits(Limits(**limits))
    attempt.serve(connection)


def _called_back() -> socket.socket:
    """A connection to the port that standard input names, opened with the password that stands there, too."""
    port, password = sys.stdin.readline().split()
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(bytes.fromhex(password))
    return connection
