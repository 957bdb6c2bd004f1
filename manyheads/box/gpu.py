"""The `namespaces` level on a GPU. One box uses a GPU at a time."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from .connection import Connection
from .cuda import start_cuda
from .names import BoxUnavailable
from .namespaces import NamespaceBox, uid_for_box
from .nvidia import Driver, Gpu, equipment, find_driver, missing, separate_gpus
from .worker.limits import Limits


class GpuLock:
    """An exclusive lock on a GPU until it is released or this process ends.

    An abstract socket address, which only one process on this machine can bind.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        """Lock the first GPU that is free. Raises BoxUnavailable if none is."""
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
            "another grader uses the GPU, which takes one attempt at a time. "
            "Next: run the same command again when that one has ended"
        )

    def release(self) -> None:
        """Let other processes have the GPU."""
        self._socket.close()


class GpuBox(NamespaceBox):
    """A box with a GPU. CUDA does not survive a fork, so the zygote never uses it and each attempt starts it anew."""

    def __init__(self, limits: Limits, hidden: Path, driver: Driver | None = None) -> None:
        """Raise BoxUnavailable if something is missing or another box has the GPU."""
        driver = driver or find_driver()
        for says, command in missing(driver, uid_for_box()):
            raise BoxUnavailable(f"{says}. Next: {command}")
        self._lock = GpuLock(separate_gpus(driver))
        try:
            super().__init__(limits, hidden, equipment(driver, self._lock.gpu))
        except BaseException:
            self._lock.release()
            raise

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process in which CUDA has started. Raises BoxUnavailable if it does not start."""
        connection = super().attempt(limits)
        start_cuda(connection)
        return connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        self._lock.release()
