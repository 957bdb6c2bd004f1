"""The rlimits of one attempt. Only Unix has rlimits."""

from __future__ import annotations

import resource

from .limits import CUDA, CUDA_SECONDS, MIB, Limits


def apply_rlimits(limits: Limits) -> None:
    """Set the limits for this process and its children. Hard limits are lowered too, so they cannot be raised again.

    On a GPU the address space is not limited, because CUDA reserves more than there is memory: only a cgroup bounds it.
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
        (resource.RLIMIT_CORE, 1),  # 0 would still feed a handler that the core pattern pipes to, 1 does not: core(5)
    ):
        hard = resource.getrlimit(kind)[1]
        bound = min((n for n in (value, hard) if n != resource.RLIM_INFINITY), default=value)
        try:
            resource.setrlimit(kind, (bound, bound))
        except (ValueError, OSError):  # macOS refuses RLIMIT_AS
            continue


_baseline = 0


def measure_address_space() -> None:
    """Record how much address space the interpreter uses before the attempt, while /proc can be read."""
    global _baseline
    try:
        with open("/proc/self/statm") as statm:
            _baseline = int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        _baseline = 4096 * MIB


def _address_space() -> int:
    return _baseline
