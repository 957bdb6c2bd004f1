"""Measure the peak memory of a run beyond the memory before it, in bytes."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): VmHWM becomes VmRSS


def peak_of(run: Callable[[], T], device: str) -> tuple[T, int | None]:
    """The result of the run, and its peak: of the device's allocator, or of this process on the CPU.

    The peak is None if the system does not report it (on the CPU only Linux does).
    """
    return _on_cuda(run) if device == "cuda" else _on_cpu(run)


def free_memory(device: str) -> int | None:
    """The free memory of the device; None if the system does not report it."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    with contextlib.suppress(OSError):
        return _kilobytes("MemAvailable", Path("/proc/meminfo").read_text())
    return None


def _on_cuda(run: Callable[[], T]) -> tuple[T, int]:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    torch.cuda.synchronize()
    return found, torch.cuda.max_memory_allocated() - before


def _on_cpu(run: Callable[[], T]) -> tuple[T, int | None]:
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else memory that malloc keeps would be reused without being counted
        _RESET.write_text(_RESET_PEAK)
        before = _kilobytes("VmRSS", _STATUS.read_text())
    except (OSError, AttributeError, TypeError):  # macOS has no malloc_trim, Windows no library without a name
        return run(), None
    found = run()
    after = _kilobytes("VmHWM", _STATUS.read_text())
    return found, None if before is None or after is None else max(0, after - before)


def _kilobytes(name: str, text: str) -> int | None:
    """The bytes in a line of /proc such as "VmRSS:    1234 kB"."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else None
