"""Fill the free blocks of the zygote's memory, so that an attempt's new objects get pages of their own.

A fork shares its parent's pages and copies each page that it writes to. malloc and Python would place new objects into
free blocks all over the heap, which caused a fifth of all page copies. So the zygote allocates those blocks once, and
every attempt allocates at the end of the heap. Source: mallinfo(3); "The Python
memory manager" in Objects/obmalloc.c.
"""

from __future__ import annotations

import ctypes

_POOL, _FIRST = 16 << 10, 48  # the size of a pool of Python's small objects, and the offset of the first one in it
_POOL_SIZES = range(48, 513, 16)
_SIZES = (
    *(1 << n for n in range(17, 11, -1)),
    *range(2032, 16, -16),
)  # large ones first, so that none splits a larger block
_HEAD = 8  # bytes that malloc keeps before each block
_END = 4096  # a block this close to the end of the heap counts as at the end
_BYTES = b"".__sizeof__()
_AT_MOST = 16 << 20  # bytes to allocate at most in the heap, and in the pools of each size


class _Heap(ctypes.Structure):
    """`struct mallinfo2`. keepcost: the free bytes at the end of the heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def fill_free_blocks() -> list[bytes]:
    """Fill them. The pools stay filled while the result is kept. Skips the heap if malloc is not glibc's."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2"):
        _fill_heap(libc)
    return _fill_pools()


def _fill_heap(libc: ctypes.CDLL) -> None:
    """Allocate every free block of malloc's heap, and never free it."""
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
            if (
                id(kept[-1]) % _POOL == _FIRST
            ):  # the first object of an empty pool: all other pools of this size are full
                break
    return kept
