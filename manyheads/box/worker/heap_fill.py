"""No holes in the warm process's memory: what an attempt makes then stands together, on pages of its own.

A fork shares its parent's pages until it writes to them, and copies each that it does. New objects would go where old
ones were given back, all over the heap: a fifth of the pages that an attempt had copied, one by one. So the warm
process takes up those places itself, once, and every attempt begins at the end. Source: mallinfo(3); "The Python
memory manager" in Objects/obmalloc.c.
"""

from __future__ import annotations

import ctypes

_POOL, _FIRST = 16 << 10, 48  # bytes of a pool of Python's small objects, and where in it the first one stands
_POOL_SIZES = range(48, 513, 16)
_SIZES = (*(1 << n for n in range(17, 11, -1)), *range(2032, 16, -16))  # large ones first: none breaks up a larger one
_HEAD = 8  # bytes of malloc's own before each block
_END = 4096  # bytes before the end of the heap that count as its end
_BYTES = b"".__sizeof__()
_AT_MOST = 16 << 20  # bytes that are taken up in the heap, and in the pools of one size


class _Heap(ctypes.Structure):
    """`struct mallinfo2`. keepcost: bytes that are free at the end of the heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def fill_holes() -> list[bytes]:
    """What must be kept for as long as Python's part shall have none. Does nothing where malloc is not glibc's."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2"):
        _fill_heap(libc)
    return _fill_pools()


def _fill_heap(libc: ctypes.CDLL) -> None:
    """Never given back: the heap is as long as the process."""
    libc.mallinfo2.restype = _Heap
    libc.sbrk.restype = libc.malloc.restype = ctypes.c_size_t
    libc.malloc.argtypes = libc.free.argtypes = (ctypes.c_size_t,)
    end, left = libc.sbrk(0) - libc.mallinfo2().keepcost - _END, _AT_MOST
    for size in _SIZES:
        while left > 0:
            block = libc.malloc(size - _HEAD)
            if not block or block >= end:
                libc.free(block)
                break
            left -= size


def _fill_pools() -> list[bytes]:
    kept = []
    for size in _POOL_SIZES:
        for _ in range(_AT_MOST // size):
            kept.append(bytes(size - _BYTES))
            if id(kept[-1]) % _POOL == _FIRST:  # a pool that was empty: all others of this size are full
                break
    return kept
