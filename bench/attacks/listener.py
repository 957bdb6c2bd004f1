"""Somebody outside who listens on 127.0.0.1, and keeps what is sent."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

MOST = 1 << 24


class Listener:
    """Listens until the block ends. `connections` and `received` are the evidence."""

    def __init__(self) -> None:
        """Take any free port."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.connections = 0
        self.received = b""

    def __enter__(self) -> Listener:
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=5)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.settimeout(5)
                try:
                    while len(self.received) < MOST and (read := connection.recv(1 << 16)):
                        self.received += read
                except OSError:
                    continue
