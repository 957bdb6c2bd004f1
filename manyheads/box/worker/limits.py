"""The limits of one attempt. The module `rlimits` enforces some of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

MIB = 1 << 20
CUDA = "cuda"
# What CUDA itself needs: memory for libraries and pinned buffers, threads, device files, and time to start.
CUDA_MEMORY_MIB, CUDA_THREADS, CUDA_FILES, CUDA_SECONDS = 8192, 64, 384, 60


@dataclass(frozen=True)
class Limits:
    """The resources that one attempt may use. Sizes in MiB, times in seconds.

    seconds_per_call: from sending a Call to the end of its Reply.
    seconds_per_attempt: for all calls of an attempt together, even if its process ends at every call.
    device: "cpu", or "cuda", which admits what the driver needs.
    """

    seconds_per_call: float = 5.0
    seconds_per_attempt: float = 20.0
    memory_mib: int = 2048
    files_mib: int = 32
    processes: int = 32
    open_files: int = 128
    reply_mib: int = 32
    device: str = "cpu"

    def on(self, device: str) -> Limits:
        """Return these limits for attempts on this device, with CUDA's own needs added."""
        if device != CUDA:
            return self
        return dataclasses.replace(
            self,
            device=CUDA,  # a plain str, because a new interpreter reads the repr of these limits
            memory_mib=self.memory_mib + CUDA_MEMORY_MIB,
            processes=self.processes + CUDA_THREADS,
            open_files=self.open_files + CUDA_FILES,
        )
