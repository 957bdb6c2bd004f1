"""The zygote of a box: a process that has imported torch. Every attempt is one fork of it, in namespaces of its own."""

from __future__ import annotations

import gc
import os
import socket
from functools import partial

import torch

from . import attempt, confine, huge_pages
from .heap_fill import fill_free_blocks
from .limits import Limits
from .pipes import Pipes
from .rlimits import apply_rlimits, measure_address_space
from .supervisor import Supervisor
from .wire import READY

_COLLECT_AFTER = (
    20_000  # new objects before a collection: an attempt makes several times as many, with few reference cycles
)


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
    """Preparations that pay off only for many attempts. Keep the result while attempts are forked."""
    from . import meta, seccomp

    confine.seal_devices()
    meta.make_ready()
    seccomp.make_ready()
    gc.freeze()  # so that the collection below need not look at what was imported, which holds next to no garbage
    if not os.path.exists("/dev/nvidiactl"):  # a gradient initialises CUDA, after which no fork can use it
        from .warmup import warm_up

        warm_up()
    gc.collect()
    kept = fill_free_blocks()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    huge_pages.collapse()
    return kept


def _run(isolation: str, limits: Limits, receives: int, sends: int) -> None:
    """Run an attempt in this process. Never returns."""
    status = 1
    try:
        os.setsid()  # a process group spans PID namespaces: kill(0, …) would reach the zygote
        connection = Pipes(*attempt.hide_descriptors(receives, sends))
        attempt.silence()  # again, because a fork shares what is open: its flags would carry bits to other attempts
        if isolation == "namespaces":
            confine.prefer_oom_kill()
            confine.enter_namespaces(limits)
            confine.drop_privileges(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(connection)
        status = 0
    finally:
        os._exit(status)
