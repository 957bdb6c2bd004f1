"""Which operations a call runs: for hygiene checks, never the only defence.

Code that wants to hide from these modes can. A check that matters asks in
addition for something that the operation in question cannot give.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .messages import Operations

_FUSED = (F.scaled_dot_product_attention, F.multi_head_attention_forward, torch._native_multi_head_attention)


class _Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.fused = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.fused |= func in _FUSED
        return func(*args, **(kwargs or {}))


class _Kernels(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first use imports torch._dynamo: 700 ms in every fresh process

    def __init__(self) -> None:
        super().__init__()
        self.fused = False
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.fused |= "scaled_dot_product" in str(func) or "_native_multi_head_attention" in str(func)
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, Tensor) and tensor.layout is torch.strided and not func.is_view:
                self.largest = max(self.largest, tensor.numel())
        return out


class Watch:
    """`with Watch() as seen: ...` and then `seen.operations()`."""

    def __init__(self) -> None:
        self._functions, self._kernels = _Functions(), _Kernels()

    def __enter__(self) -> Watch:
        self._functions.__enter__()
        self._kernels.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._kernels.__exit__(*exc)
        self._functions.__exit__(*exc)

    def operations(self) -> Operations:
        """What was seen so far."""
        return Operations(self._functions.fused or self._kernels.fused, self._kernels.largest)
