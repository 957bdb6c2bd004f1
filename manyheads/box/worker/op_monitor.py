"""Observe which operations a call runs, for hygiene checks, but never as the only evidence.

Two modes of PyTorch observe the operations: one sees calls of torch's functions, the other one the
kernels that they run. Code can hide its operations from these modes. A check that depends on them
also asks for something that the operation in question cannot compute.

While the modes are on, a copy from the meta device to the CPU succeeds and holds zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from math import prod
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .messages import KERNELS_LIMIT, MADE_LIMIT, SHAPES_LIMIT, Operations

NODES_LIMIT = 100_000  # nodes of a graph that are searched
_FUSED = (
    F.scaled_dot_product_attention,
    F.multi_head_attention_forward,
    torch._native_multi_head_attention,
)
_TO_COPY, _COPY_INTO = torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default
# These may take tensors on two devices: a copy moves data, and indices may be on the CPU.
_MAY_MIX = frozenset(
    "copy_ index index_put index_put_ _index_put_impl_ _nested_view_from_jagged".split()
)


@cache  # computing an operation's name is slow
def _is_fused(function: Any) -> bool:
    return function in _FUSED or "scaled_dot_product" in getattr(function, "__name__", "")


@cache
def _is_fused_kernel(kernel: Any) -> bool:
    """Return whether this is a kernel of fused attention.

    `_safe_softmax` counts as one, because only scaled_dot_product_attention uses it, in its
    mathematical backend.
    """
    return any(
        name in str(kernel)
        for name in ("scaled_dot_product", "_native_multi_head_attention", "_safe_softmax")
    )


def _is_fused_in_graph(result: object) -> bool:
    """Return whether the result's autograd graph contains fused attention.

    Code that hides its operations from the modes below cannot hide them in the graph without losing
    its gradients. At most about NODES_LIMIT nodes are searched. A result without a graph contains
    no fused attention.
    """
    start = result.grad_fn if isinstance(result, Tensor) else None
    visited = {start}
    pending = [start]
    while pending and len(visited) < NODES_LIMIT:
        node = pending.pop()
        if node is None:
            continue
        if node.name().startswith(("ScaledDotProduct", "SafeSoftmax", "NativeMultiHeadAttention")):
            return True
        new = [successor for successor, _ in node.next_functions if successor not in visited]
        visited.update(new)
        pending += new
    return False


@cache
def _may_mix(kernel: Any) -> bool:
    return str(kernel).partition(".")[2].partition(".")[0] in _MAY_MIX


def _copied_out(kernel: Any, args: Any, kwargs: Any) -> Tensor | None:
    """Return zeros for a copy from the meta device to another one, or None for other operations.

    Tensors on the meta device have no numbers, so the copy would raise. With zeros the call
    continues, and the device of its output shows that the tensor was moved. A copy into a tensor on
    another device sets this tensor to zero.
    """
    if (
        kernel is _TO_COPY
        and args[0].is_meta
        and torch.device(kwargs.get("device") or "meta").type == "cpu"
    ):
        return torch.zeros_like(args[0], dtype=kwargs.get("dtype"), device="cpu")
    return (
        args[0].zero_()
        if kernel is _COPY_INTO and args[1].is_meta and not args[0].is_meta
        else None
    )


def _name_of(kernel: Any) -> str:
    """Return the name of one of PyTorch's own kernels, without the overload, or "" for others."""
    space, _, name = str(kernel).partition(".")
    return name.partition(".")[0] if space == "aten" else ""


def _is_dense(value: object) -> bool:
    """Return whether this is a strided tensor with one shape: neither sparse nor nested."""
    return isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested


def _on_two_devices(args: Any) -> bool:
    """Return whether two tensors among the arguments are on different devices.

    Tensors in a list or tuple count. Tensors without axes do not.
    """
    flat = [
        a
        for arg in args
        for a in (arg if isinstance(arg, tuple | list) else (arg,))
        if isinstance(a, Tensor)
    ]
    return len(flat) > 1 and len({a.device.type for a in flat if a.dim() > 0}) > 1


class _Functions(TorchFunctionMode):
    """Observes whether torch's functions of fused attention are called."""

    def __init__(self, monitor: OpMonitor) -> None:
        super().__init__()
        self.fused = False
        self.recorded = False
        self._monitor = monitor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        fused = _is_fused(func)
        self.fused |= fused
        with (
            self._monitor.not_counting()
            if func is F.scaled_dot_product_attention
            else nullcontext()
        ):
            out = func(*args, **(kwargs or {}))
        self.recorded |= fused and isinstance(out, Tensor) and out.requires_grad
        return out


def _new(*args: Any, **kwargs: Any) -> Tensor:
    """Return a new tensor, as Tensor.__new__ does. A tensor of a subclass is made without the mode.

    The parameters have no names because otherwise torch._dynamo could not be imported.
    """
    with nullcontext() if args[0] is Tensor else torch._C._DisableTorchDispatch():
        tensor: Tensor = torch._C.TensorBase.__new__(*args, **kwargs)
    return tensor


class OpMonitor(TorchDispatchMode):
    """Observes the operations of a call: `with OpMonitor() as monitor: ...`.

    Afterwards `monitor.operations()` returns them. Code that works without this mode also works
    under it. This needs two measures. The mode declares that it supports higher-order operators
    (flex_attention, cond), because they refuse other modes. And tensors of a subclass (such as
    CausalBias) are made without the mode, because the constructor fails if a mode has seen the new
    tensor.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # With True, the first use imports torch._dynamo, which takes 700 ms in a fresh process.
        return False

    def __init__(self) -> None:
        super().__init__()
        self._functions = _Functions(self)
        self._fused = self._mixed = False
        self._shapes: set[tuple[int, ...]] = set()
        self._kernels: set[Any] = set()
        self._counting = True

    def __enter__(self) -> Self:
        self._functions.__enter__()
        Tensor.__new__ = _new  # type: ignore[method-assign, assignment]
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        del Tensor.__new__
        self._functions.__exit__(*exc)

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Do not count the tensors that the fused function makes internally.

        They depend on layout and device. If all fast kernels are disabled, these tensors are
        counted, because then the caller chose the slow path.
        """
        self._counting = not (
            torch.backends.cuda.flash_sdp_enabled()
            or torch.backends.cuda.mem_efficient_sdp_enabled()
        )
        try:
            yield
        finally:
            self._counting = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mixed = _on_two_devices(args) and not _may_mix(func)
        self._mixed |= mixed
        out = _copied_out(func, args, kwargs or {})
        out = func(*args, **(kwargs or {})) if out is None else out
        if (
            mixed
            and any(isinstance(arg, Tensor) and arg.is_meta for arg in args)
            and not getattr(out, "is_meta", True)
        ):
            out.zero_()  # the meta operation wrote nothing into it
        self._fused |= _is_fused_kernel(func)
        self._kernels.add(func)
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if self._counting and _is_dense(tensor) and not getattr(func, "is_view", False):
                self._shapes.add(tuple(tensor.shape))
        return out

    def inspect_graph(self, result: object) -> None:
        """Search the autograd graph of the result for fused attention, and record it if found."""
        self._fused |= _is_fused_in_graph(result)

    def operations(self) -> Operations:
        """Return the operations that have been observed so far."""
        shapes = sorted(self._shapes, key=lambda shape: (prod(shape), shape))
        return Operations(
            self._functions.fused or self._fused,
            tuple(sorted({prod(shape) for shape in shapes})[-MADE_LIMIT:]),
            self._mixed,
            self._functions.recorded,
            tuple(shapes[-SHAPES_LIMIT:]),
            tuple(sorted(set(filter(None, map(_name_of, self._kernels))))[:KERNELS_LIMIT]),
        )
