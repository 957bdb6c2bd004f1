"""The process of one attempt at the `process` level: a fresh interpreter.

It connects to the judge, imports torch, sets rlimits if the system has them, and then answers
messages over the connection. `without_namespaces.ProcessBox` starts it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any


def main(limits: Mapping[str, Any], modules: Collection[str]) -> None:
    """Connect to the judge, serve one attempt, and return when the judge closes the connection.

    On Unix, a thread kills the whole session if the judge ends first. Before the first message, one
    byte tells the judge that the process is ready.

    Args:
        limits: the fields of Limits.
        modules: the packages that the attempt may import.
    """
    # before the slow import of torch, because the judge waits for the connection
    connection = _connect()

    # While modules are imported, garbage collections find nothing and take a fifth of the time.
    gc.disable()
    import torch

    from . import attempt
    from .limits import Limits, apply_rlimits, measure_address_space

    gc.enable()
    if hasattr(os, "killpg"):
        connection = socket.socket(fileno=attempt.hide_descriptors(connection.detach())[0])
        threading.Thread(target=_end_with_judge, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(1)
    attempt.silence()
    measure_address_space()
    apply_rlimits(Limits(**limits))
    attempt.allow_only(modules)
    connection.sendall(b"1")  # ready: from now on the attempt's time counts
    attempt.serve(connection.makefile("rb"), connection.makefile("wb"))


def _end_with_judge(judge: int) -> None:
    """Kill this session when the judge has ended, even if student code never returns."""
    while os.getppid() == judge:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _connect() -> socket.socket:
    """Read a port and a password from standard input, connect to the port and send the password."""
    port, password = sys.stdin.readline().split()
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(bytes.fromhex(password))
    return connection
