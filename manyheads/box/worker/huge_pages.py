"""Huge pages for the warm process: forking it copies its page tables, and their length is what a fork costs.

Some 180 MB of small pages took 7 ms to copy and 7 ms to take down, in large ones 1 ms each (measured where the
other figures of docs/performance.md are). Source: madvise(2), MADV_COLLAPSE, Linux 6.1.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator

_HUGE = 2 << 20  # bytes
_MADV_COLLAPSE = 25
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0 +(?:\[heap\])?$", re.MULTILINE)


def collapse() -> None:
    """Move this process's anonymous memory into huge pages. Where the kernel cannot, all stays as it is."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError):
        for start in _aligned_blocks():
            advise(start, _HUGE, _MADV_COLLAPSE)


def _aligned_blocks() -> Iterator[int]:
    """Addresses of 2 MiB blocks that lie whole in one anonymous region."""
    with open("/proc/self/maps") as maps:
        text = maps.read()
    for low, high in _REGION.findall(text):
        yield from range(-(-int(low, 16) // _HUGE) * _HUGE, int(high, 16) // _HUGE * _HUGE, _HUGE)
