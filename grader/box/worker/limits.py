"""Limits of one attempt, and the rlimits that enforce some of them."""

from __future__ import annotations

import dataclasses
import resource
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


def apply_rlimits(limits: Limits) -> None:
    """Bind this process and all that it starts. Lowers hard limits: there is no way back.

    On a GPU not the address space, of which CUDA reserves more than there is memory: there only a cgroup bounds memory.
    """
    on_gpu = limits.device == CUDA
    address_space = resource.RLIM_INFINITY if on_gpu else _address_space() + limits.memory_mib * MIB
    seconds = int(limits.seconds_per_attempt) + 1 + (CUDA_SECONDS if on_gpu else 0)
    for kind, value in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.files_mib * MIB),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = min((n for n in (value, hard) if n != resource.RLIM_INFINITY), default=value)
        try:
            resource.setrlimit(kind, (bound, bound))
        except (ValueError, OSError):  # macOS refuses RLIMIT_AS
            continue


_baseline = 0


def measure_address_space() -> None:
    """Note how much the warm interpreter maps already, while /proc can be read."""
    global _baseline
    try:
        with open("/proc/self/statm") as statm:
            _baseline = int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        _baseline = 4096 * MIB


def _address_space() -> int:
    return _baseline
