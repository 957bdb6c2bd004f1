"""The `namespaces` level on a GPU, which one box has at a time."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from .connection import Connection
from .cuda import start_cuda
from .names import BoxUnavailable
from .namespaces import NamespaceBox, uid_for_box
from .nvidia import Driver, Gpu, apart, equipment, find_driver, missing
from .worker.limits import Limits


class GpuLock:
    """A GPU that is ours until we let go of it or end: an abstract address on this machine, which one process can have."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        """Take the first that is free. Raises BoxUnavailable where none is."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for gpu in gpus:
            try:
                self._socket.bind(f"\0manyheads-{gpu.node[:80]}")
            except OSError:
                continue
            self.gpu = gpu
            return
        self._socket.close()
        raise BoxUnavailable(
            "another grader has the GPU, and one attempt at a time is let onto it. "
            "Next: the same command again, once that one has ended"
        )

    def end(self) -> None:
        """Let others have it."""
        self._socket.close()


class GpuBox(NamespaceBox):
    """A box with a GPU. Its warm process never touches CUDA, which does not survive a fork: each attempt starts it anew."""

    def __init__(self, limits: Limits, hidden: Path, driver: Driver | None = None) -> None:
        """Raises BoxUnavailable where something is missing, or another box has the GPU."""
        driver = driver or find_driver()
        for says, command in missing(driver, uid_for_box()):
            raise BoxUnavailable(f"{says}. Next: {command}")
        self._turn = GpuLock(apart(driver))
        try:
            super().__init__(limits, hidden, equipment(driver, self._turn.gpu))
        except BaseException:
            self._turn.end()
            raise

    def attempt(self, limits: Limits) -> Connection:
        """A connection to a new process in which CUDA has started. Raises BoxUnavailable where it does not start."""
        connection = super().attempt(limits)
        start_cuda(connection)
        return connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        self._turn.end()
