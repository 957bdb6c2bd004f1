"""The limits of one attempt. On Unix, rlimits enforce some of these limits.

`apply_rlimits` limits each process by itself. In addition, the judge limits the time and the size
of replies (`connection`), and at level `namespaces` a cgroup limits all processes together, and
tmpfs the size of /tmp.
"""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
from dataclasses import dataclass

MIB = 1 << 20
CUDA = "cuda"
# What CUDA itself needs: memory for libraries and pinned buffers, threads, device files, and time
# to start.
CUDA_MEMORY_MIB, CUDA_THREADS, CUDA_FILES, CUDA_SECONDS = 8192, 64, 384, 60


@dataclass(frozen=True)
class Limits:
    """The resources that one attempt may use. Sizes are in MiB, times in seconds.

    Attributes:
        seconds_per_call: the attempt's own time from sending a Call to the end of its Reply.
        seconds_per_attempt: the time for all calls of an attempt together, even if its process ends
            at every call.
        memory_mib: the memory that it may use in addition to the interpreter's.
        files_mib: the size of one file, and of each of /tmp and /dev/shm.
        processes: the processes and threads together.
        open_files: the file descriptors of one process.
        reply_mib: the size of one reply.
        device: "cpu" or "cuda". With "cuda", the resources that the driver needs are added.
    """

    seconds_per_call: float = 5.0
    seconds_per_attempt: float = 20.0
    memory_mib: int = 2048
    files_mib: int = 32
    processes: int = 32
    open_files: int = 128
    reply_mib: int = 32
    device: str = "cpu"

    def for_device(self, device: str) -> Limits:
        """Return these limits for attempts on this device, with CUDA's own needs added."""
        if device != CUDA:
            return self
        return dataclasses.replace(
            self,
            device=device,
            memory_mib=self.memory_mib + CUDA_MEMORY_MIB,
            processes=self.processes + CUDA_THREADS,
            open_files=self.open_files + CUDA_FILES,
        )


_baseline = 4096 * MIB  # the address space of the interpreter before the attempt


def measure_address_space() -> None:
    """Record how much address space the interpreter uses before the attempt.

    This must happen while /proc can still be read.
    """
    global _baseline
    with contextlib.suppress(OSError), open("/proc/self/statm") as statm:
        _baseline = int(statm.read().split()[0]) * mmap.PAGESIZE


def apply_rlimits(limits: Limits) -> None:
    """Set the limits for this process and its children.

    Hard limits are lowered too, so they cannot be raised again. A hard limit that is already lower
    stays. A limit that the system refuses is skipped, and on Windows no limit is set.

    On a GPU the address space is not limited, because CUDA reserves more than there is memory: only
    a cgroup bounds it.
    """
    try:
        import resource
    except ModuleNotFoundError:  # on Windows only the deadline limits the attempt
        return
    on_gpu = limits.device == CUDA
    for rlimit, value in (
        (
            resource.RLIMIT_AS,
            resource.RLIM_INFINITY if on_gpu else _baseline + limits.memory_mib * MIB,
        ),
        (resource.RLIMIT_CPU, int(limits.seconds_per_attempt) + 1 + CUDA_SECONDS * on_gpu),
        (resource.RLIMIT_FSIZE, limits.files_mib * MIB),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        # 0 would still feed a handler that the core pattern pipes to, 1 does not: core(5)
        (resource.RLIMIT_CORE, 1),
    ):
        hard = resource.getrlimit(rlimit)[1]
        bound = min((n for n in (value, hard) if n != resource.RLIM_INFINITY), default=value)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(rlimit, (bound, bound))


def time_files(pid: int) -> list[int]:
    """Return the opened files in which the kernel counts a process's time: schedstat and stat.

    The list is empty if this system does not have both.
    """
    if not hasattr(os, "pread"):  # `OwnTime` reads them with it
        return []
    files = list[int]()
    try:
        for name in ("schedstat", "stat"):
            files.append(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
    except OSError:
        for file in files:
            os.close(file)
        return []
    return files
