"""The zygote of a box: a process that has imported torch. Every attempt is one fork of it, in namespaces of its own."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import re
import socket
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType

import torch
import torch._compile

from . import attempt, confine
from .limits import Limits, apply_rlimits, measure_address_space
from .supervisor import Supervisor
from .wire import READY

# Fill the free blocks of the zygote's memory, so that an attempt's new objects get pages of their own.
#
# A fork shares its parent's pages and copies each page that it writes to. malloc and Python would place new objects
# into free blocks all over the heap, which caused a fifth of all page copies. So the zygote allocates those blocks
# once, and every attempt allocates at the end of the heap. Source: mallinfo(3); "The Python memory manager" in
# Objects/obmalloc.c.

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


# Huge pages for the zygote: a fork copies the page tables, and their length decides what it costs.
#
# For 180 MB in small pages a fork took 7 ms and its end 7 ms; in huge pages each takes 1 ms (measured on the machine
# of docs/performance.md). Source: madvise(2), MADV_COLLAPSE, Linux 6.1.

_HUGE = 2 << 20  # bytes
_MADV_COLLAPSE = 25
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0 +(?:\[heap\])?$", re.MULTILINE)


def collapse_huge_pages() -> None:
    """Move this process's anonymous memory into huge pages, where the kernel can."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError):
        for start in _aligned_blocks():
            advise(start, _HUGE, _MADV_COLLAPSE)


def _aligned_blocks() -> Iterator[int]:
    """Yield the addresses of aligned 2 MiB blocks that lie entirely in one anonymous region."""
    with open("/proc/self/maps") as maps:
        text = maps.read()
    for low, high in _REGION.findall(text):
        yield from range(-(-int(low, 16) // _HUGE) * _HUGE, int(high, 16) // _HUGE * _HUGE, _HUGE)


_COLLECT_AFTER = 20_000  # new objects: an attempt makes several times as many, with few reference cycles


def main(control_fd: int, isolation: str) -> None:
    """Serve start requests on the control socket until it closes. The caller has switched collections off."""
    control = socket.socket(fileno=control_fd)
    torch.set_num_threads(1)
    kept = _prepare_for_many() if isolation == "namespaces" else []
    gc.enable()
    measure_address_space()
    attempt.silence()
    supervisor = Supervisor(
        control, partial(_run, isolation), confine.PidNamespaces() if isolation == "namespaces" else None
    )
    control.sendall(READY)
    supervisor.serve()
    kept.clear()


def _prepare_for_many() -> list[bytes]:
    """Make preparations that pay off only for many attempts. Keep the result while attempts are forked."""
    from . import seccomp

    confine.seal_devices()
    make_meta_ready()
    with contextlib.suppress(KeyError):  # on an unknown machine `install` raises the error
        seccomp.program(platform.machine())
    gc.freeze()  # so that the collection below need not look at what was imported, which holds next to no garbage
    if not os.path.exists("/dev/nvidiactl"):  # a gradient initialises CUDA, after which no fork can use it
        from .warmup import warm_up

        warm_up()
    gc.collect()
    kept = fill_free_blocks()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    collapse_huge_pages()
    return kept


def make_meta_ready() -> None:
    """Prepare the meta device, whose first operation would import 800 modules and take over a second in every fresh process.

    Import what it needs, and have torch call its functions below `_disable_dynamo` without their wrapper, which imports
    torch._dynamo at the first call: that is needed only under torch.compile. Where torch has changed, the wrapper stays.
    """
    import torch.fx.experimental.symbolic_shapes

    parts = torch._compile._disable_dynamo.__code__.co_consts
    wrappers = {code for code in parts if isinstance(code, CodeType) and "disable_fn" in code.co_varnames}
    for wrapper in gc.get_objects():
        if type(wrapper) is FunctionType and wrapper.__code__ in wrappers:
            cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents if "fn" in cells else None
            if type(hidden) is FunctionType:
                vars(hidden)["__dynamo_disable"] = hidden


def _run(isolation: str, limits: Limits, receives: int, sends: int) -> None:
    """Run an attempt in this process. Never returns."""
    status = 1
    try:
        os.setsid()  # a process group spans PID namespaces: kill(0, …) would reach the zygote
        # Pipes, for a socket pair would belong to the judge's network namespace, and know the host's addresses.
        receives, sends = attempt.hide_descriptors(receives, sends)
        attempt.silence()  # again, because a fork shares what is open: its flags would carry bits to other attempts
        if isolation == "namespaces":
            confine.enter_namespaces(limits)
            confine.drop_privileges(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(os.fdopen(receives, "rb"), os.fdopen(sends, "wb"))
        status = 0
    finally:
        os._exit(status)
