"""The judge's side of a zygote: ask it for an attempt's process, and end that process."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import socket

from .connection import Connection
from .worker.limits import CUDA, Limits

CUDA_GRACE = 30.0  # seconds: taking down much memory of a GPU takes its time, and the next attempt waits for it


def start_attempt(control: socket.socket, limits: Limits) -> Connection:
    """A connection to a process that the zygote behind this control socket forks."""
    data, their_data = socket.socketpair()
    lifeline, their_lifeline = socket.socketpair()
    with their_data, their_lifeline:
        request = json.dumps(dataclasses.asdict(limits)).encode()
        socket.send_fds(control, [request], [their_data.fileno(), their_lifeline.fileno()])
    least = CUDA_GRACE if limits.device == CUDA else 0.0
    return Connection(data, limits, lambda seconds: _hang_up(lifeline, max(seconds, least)))


def _hang_up(lifeline: socket.socket, seconds: float) -> int | None:
    """Tell the keeper to end the attempt, and wait for its word on how it ended."""
    try:
        lifeline.shutdown(socket.SHUT_WR)
        ready, _, _ = select.select([lifeline], [], [], seconds)
        word = lifeline.recv(200) if ready else b""
        return os.waitstatus_to_exitcode(int(word)) if word.isdigit() else None
    except OSError:
        return None
    finally:
        lifeline.close()
