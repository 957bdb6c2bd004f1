"""Huge pages for the zygote: a fork copies the page tables, and their length decides what it costs.

For 180 MB in small pages a fork took 7 ms and its end 7 ms; in huge pages each takes 1 ms (measured on the machine of
docs/performance.md). Source: madvise(2), MADV_COLLAPSE, Linux 6.1.
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
    """Move this process's anonymous memory into huge pages, where the kernel can."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError):
        for start in _aligned_blocks():
            advise(start, _HUGE, _MADV_COLLAPSE)


def _aligned_blocks() -> Iterator[int]:
    """The addresses of aligned 2 MiB blocks that lie entirely in one anonymous region."""
    with open("/proc/self/maps") as maps:
        text = maps.read()
    for low, high in _REGION.findall(text):
        yield from range(-(-int(low, 16) // _HUGE) * _HUGE, int(high, 16) // _HUGE * _HUGE, _HUGE)
