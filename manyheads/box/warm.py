"""The judge's side of a zygote: request an attempt's process, and end it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import socket

from .connection import Connection, PipeChannel
from .worker.limits import CUDA, Limits

CUDA_GRACE = 30.0  # seconds: freeing much GPU memory takes long, and the next attempt waits for it


class Lifeline:
    """A socket to the supervisor for one attempt: it ends the attempt and tells when it has ended."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        self._is_ending = False

    def end(self, seconds: float) -> int | None:
        """Have the supervisor end the attempt, and wait for the exit status that it reports; None if it is not known."""
        self._is_ending = True
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
        return self._wait(seconds)

    def still_ends(self, seconds: float) -> bool:
        """Return whether the attempt was to end, and its process or what it started is still there after so many seconds."""
        if self._is_ending:
            self._wait(seconds)
        return self._is_ending

    def _wait(self, seconds: float) -> int | None:
        try:
            if not select.select([self._ours], [], [], seconds)[0]:
                return None
            word = self._ours.recv(200)
        except (OSError, ValueError):  # it was closed before
            word = b""
        self._ours.close()
        self._is_ending = False  # the supervisor has reported its end, or is gone itself and all attempts with it
        return os.waitstatus_to_exitcode(int(word)) if word.isdigit() else None


def start_attempt(control: socket.socket, limits: Limits) -> tuple[Connection, Lifeline]:
    """Have the zygote at this control socket fork a process. Returns the connection to it, and its lifeline."""
    data = PipeChannel()
    ours, theirs = socket.socketpair()
    try:
        request = json.dumps(dataclasses.asdict(limits)).encode()
        socket.send_fds(control, [request], [*data.theirs, theirs.fileno()])
    finally:
        theirs.close()
        for end in data.theirs:
            os.close(end)
    lifeline, least = Lifeline(ours), CUDA_GRACE if limits.device == CUDA else 0.0
    return Connection(data, limits, lambda seconds: lifeline.end(max(seconds, least))), lifeline
