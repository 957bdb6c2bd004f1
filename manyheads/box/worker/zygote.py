"""The zygote of a box: a process that has imported torch.

Every attempt is one fork of it, in namespaces of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import socket
from functools import partial
from types import CodeType, FunctionType

import torch
import torch._compile

from . import attempt, confine, seccomp
from .limits import Limits, apply_rlimits, measure_address_space
from .supervisor import Supervisor
from .wire import READY

# new objects: an attempt makes several times as many, with few reference cycles
_COLLECT_AFTER = 20_000


def main(control_fd: int, isolation: str) -> None:
    """Serve start requests on the control socket until it closes.

    The caller has switched collections off.
    """
    control = socket.socket(fileno=control_fd)
    torch.set_num_threads(1)
    if isolation == "namespaces":
        _prepare_for_many()
    gc.enable()
    measure_address_space()
    attempt.silence()
    namespaces = confine.PidNamespaces() if isolation == "namespaces" else None
    supervisor = Supervisor(control, partial(_run, isolation), namespaces)
    control.sendall(READY)
    supervisor.serve()


def _prepare_for_many() -> None:
    """Make preparations that pay off only for many attempts."""
    confine.seal_devices()
    make_meta_ready()
    torch.ones(1).half()  # reads /proc/cpuinfo once, and an attempt has an empty /proc
    with contextlib.suppress(KeyError):  # on an unknown machine `install` raises the error
        seccomp.program(platform.machine())
    gc.freeze()  # what was imported holds next to no garbage
    gc.set_threshold(_COLLECT_AFTER)


def make_meta_ready() -> None:
    """Prepare the meta device, whose first operation would import 800 modules and take over a
    second in every fresh process.

    Import what it needs, and have torch call its functions below `_disable_dynamo` without their
    wrapper, which imports torch._dynamo at the first call: that is needed only under torch.compile.
    Where torch has changed, the wrapper stays.
    """
    import torch.fx.experimental.symbolic_shapes

    constants = torch._compile._disable_dynamo.__code__.co_consts
    wrappers = {
        code
        for code in constants
        if isinstance(code, CodeType) and "disable_fn" in code.co_varnames
    }
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
        # Pipes, for a socket pair would belong to the judge's network namespace, and know the
        # host's addresses.
        receives, sends = attempt.hide_descriptors(receives, sends)
        # again, because a fork shares what is open: its flags would carry bits to other attempts
        attempt.silence()
        if isolation == "namespaces":
            confine.enter_namespaces(limits)
            confine.drop_privileges(limits)
        else:
            apply_rlimits(limits)
        attempt.serve(os.fdopen(receives, "rb"), os.fdopen(sends, "wb"))
        status = 0
    finally:
        os._exit(status)
