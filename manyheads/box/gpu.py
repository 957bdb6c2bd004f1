"""The `namespaces` level on a GPU, which one box uses at a time, and the start of CUDA in an
attempt's process.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from .connection import AttemptEnded, Connection
from .names import BoxUnavailable
from .namespaces import NamespaceBox
from .nvidia import Driver, Gpu, equipment, find_driver, missing, separate_gpus
from .warm import uid_for_box
from .worker.limits import CUDA_SECONDS, Limits
from .worker.messages import Call, Load

_SOURCE = """
import torch

def starts():
    with torch.enable_grad():  # calls run without gradients
        x = torch.ones(64, 64, device="cuda", requires_grad=True)
        (x @ x).sum().backward()
    return x.grad.sum()
"""
_ANSWER = 2 * 64.0**3  # each entry of x is in 2 · 64 products


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
        problem = "another grader uses the GPU, which takes one attempt at a time"
        raise BoxUnavailable(f"{problem}. Next: run the same command again when that one has ended")

    def release(self) -> None:
        """Let other processes have the GPU."""
        self._socket.close()


class GpuBox(NamespaceBox):
    """A box with a GPU. CUDA does not survive a fork, so the zygote never uses it and each attempt
    starts it anew.
    """

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
        """Return a connection to a new process in which CUDA has started.

        Raises BoxUnavailable if it does not start.
        """
        connection = super().attempt(limits)
        start_cuda(connection)
        return connection

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        super().__exit__(exc_type, error, tb)
        self._lock.release()


def start_cuda(connection: Connection) -> None:
    """Start CUDA before student code is loaded, so that its time does not count as the attempt's,
    and compute something. Raises BoxUnavailable, with CUDA's message, if that fails.
    """
    try:
        connection.ask(Load(_SOURCE, "starts.py"), CUDA_SECONDS)
        reply = connection.ask(Call("starts"), CUDA_SECONDS)
    except AttemptEnded as ended:
        raise BoxUnavailable(
            f"CUDA does not start in the box ({ended}). Next: course doctor"
        ) from None
    answer = reply.outputs[0] if reply.outputs else None
    if (
        answer is None
        or answer.device != "cuda"
        or answer.tensor is None
        or answer.tensor.item() != _ANSWER
    ):
        connection.close()
        problem = (
            (reply.raised.message.strip() or reply.raised.type)
            if reply.raised
            else "it computed something else"
        )
        raise BoxUnavailable(
            f"CUDA does not start in the box ({problem.splitlines()[0]}). Next: course doctor"
        )
