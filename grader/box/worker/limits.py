"""Limits of one attempt, and the rlimits that enforce some of them."""

from __future__ import annotations

import resource
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one attempt may use. Sizes in MiB, times in seconds.

    seconds_per_call: from sending a Call to the end of its Reply.
    seconds_per_attempt: all of an attempt's calls together, also when it dies at every one.
    """

    seconds_per_call: float = 5.0
    seconds_per_attempt: float = 20.0
    memory_mib: int = 2048
    files_mib: int = 32
    processes: int = 32
    open_files: int = 128
    reply_mib: int = 32


def apply_rlimits(limits: Limits) -> None:
    """Bind this process and all that it starts. Lowers hard limits: there is no way back."""
    address_space = _address_space() + limits.memory_mib * MIB
    seconds = int(limits.seconds_per_attempt) + 1
    for kind, value in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.files_mib * MIB),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
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
