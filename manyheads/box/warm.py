"""The judge's side of a zygote: request an attempt's process, and end it."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import socket

from .channel import PipeChannel
from .connection import Connection
from .worker.limits import CUDA, Limits

CUDA_GRACE = 30.0  # seconds: freeing much GPU memory takes long, and the next attempt waits for it


def start_attempt(control: socket.socket, limits: Limits) -> Connection:
    """Have the zygote at this control socket fork a process. Returns the connection to it."""
    data = PipeChannel()
    lifeline, their_lifeline = socket.socketpair()
    try:
        request = json.dumps(dataclasses.asdict(limits)).encode()
        socket.send_fds(control, [request], [*data.theirs, their_lifeline.fileno()])
    finally:
        their_lifeline.close()
        for end in data.theirs:
            os.close(end)
    least = CUDA_GRACE if limits.device == CUDA else 0.0
    return Connection(data, limits, lambda seconds: _hang_up(lifeline, max(seconds, least)))


def _hang_up(lifeline: socket.socket, seconds: float) -> int | None:
    """Have the supervisor end the attempt, and wait for the exit status that it reports."""
    try:
        lifeline.shutdown(socket.SHUT_WR)
        ready, _, _ = select.select([lifeline], [], [], seconds)
        word = lifeline.recv(200) if ready else b""
        return os.waitstatus_to_exitcode(int(word)) if word.isdigit() else None
    except OSError:
        return None
    finally:
        lifeline.close()
