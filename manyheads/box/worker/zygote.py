"""The warm process of a box: it has imported torch, and forks. Every attempt is one fork, in namespaces of its own."""

from __future__ import annotations

import gc
import os
import socket
from functools import partial

import torch

from . import attempt, confine, huge_pages
from .heap_fill import fill_holes
from .limits import Limits
from .rlimits import apply_rlimits, measure_address_space
from .supervisor import Keeper
from .wire import READY

_COLLECT_AFTER = 20_000  # new objects: a whole attempt makes some times as many, and few of them in circles


def main(control_fd: int, isolation: str) -> None:
    """Serve start requests on the control socket until it closes."""
    control = socket.socket(fileno=control_fd)
    torch.set_num_threads(1)
    kept = _prepare_for_many() if isolation == "namespaces" else []
    measure_address_space()
    attempt.silence()
    keeper = Keeper(control, partial(_run, isolation), confine.PidNamespaces() if isolation == "namespaces" else None)
    control.sendall(READY)
    keeper.serve()
    kept.clear()


def _prepare_for_many() -> list[bytes]:
    """What a single check would not win back. The answer is to be kept while attempts are forked."""
    from . import meta, seccomp

    meta.make_ready()
    seccomp.make_ready()
    if not os.path.exists("/dev/nvidiactl"):  # a gradient asks CUDA for its devices, and then no fork can use them
        from .warmup import rehearse

        rehearse()
    gc.collect()
    kept = fill_holes()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    huge_pages.collapse()
    return kept


def _run(isolation: str, limits: Limits, connection_fd: int) -> None:
    """An attempt's process: never returns."""
    status = 1
    try:
        os.setsid()  # a process group reaches across PID namespaces: kill(0, …) would meet the zygote
        connection = attempt.private(socket.socket(fileno=connection_fd))
        if isolation == "namespaces":
            confine.die_first()
            confine.own_namespaces(limits)
            confine.bind_down(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(connection)
        status = 0
    finally:
        os._exit(status)
