"""Limits of one attempt. `rlimits` enforces some of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

MIB = 1 << 20
CUDA = "cuda"
# What CUDA itself takes of an attempt's limits: its libraries and pinned buffers, its threads, its device files, its start.
CUDA_MEMORY_MIB, CUDA_THREADS, CUDA_FILES, CUDA_SECONDS = 8192, 64, 384, 60


@dataclass(frozen=True)
class Limits:
    """What one attempt may use. Sizes in MiB, times in seconds.

    seconds_per_call: from sending a Call to the end of its Reply.
    seconds_per_attempt: all of an attempt's calls together, also when it dies at every one.
    device: "cpu", or "cuda": then what its driver needs is let through.
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
        """These limits for attempts that compute there: CUDA's own needs come on top."""
        if device != CUDA:
            return self
        return dataclasses.replace(
            self,
            device=device,
            memory_mib=self.memory_mib + CUDA_MEMORY_MIB,
            processes=self.processes + CUDA_THREADS,
            open_files=self.open_files + CUDA_FILES,
        )
