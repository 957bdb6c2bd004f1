"""The attempt's end of its connection: two pipes.

A socket pair would belong to the judge's network namespace, wherever it is used, and tell about it: it knows the host's
addresses. A pipe belongs to none.
"""

from __future__ import annotations

import os


class Pipes:
    """Receives from one pipe and sends into the other, as a connected socket does."""

    def __init__(self, receives: int, sends: int) -> None:
        """The descriptors of the end to read from and of the end to write to."""
        self._receives, self._sends = receives, sends

    def recv_into(self, into: memoryview) -> int:
        """Receive into this memory. Returns how many bytes; 0 if the other side has closed the connection."""
        return os.readv(self._receives, [into])

    def sendall(self, data: bytes) -> None:
        """Send all of it. Raises BrokenPipeError if the other side has closed the connection."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._sends, view) :]
