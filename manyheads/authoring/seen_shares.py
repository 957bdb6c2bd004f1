"""Find out how a reference's heads share out their attention, for `course plot`, which draws that
beside a student's.

A module gives only its output. Its weights are recognised among what torch's functions return: one
table of (T, T) for each head, whose rows are shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_ROUNDING = 1e-3  # of the sum of a row


class _Shares(TorchFunctionMode):
    """Keeps the last tensor of (1, nh, T, T), or (1, T, T), whose rows are shares."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._sides = (tokens, tokens)
        self.last: Tensor | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            isinstance(result, Tensor)
            and result.is_floating_point()
            and result.shape[-2:] == self._sides
        ):
            with torch._C.DisableTorchFunction():
                is_shared_out = bool((result >= 0).all()) and bool(
                    ((result.sum(-1) - 1).abs() < _ROUNDING).all()
                )
            if is_shared_out:
                self.last = result
        return result


def shares_of(module: nn.Module, inputs: Tensor, attributes: Mapping[str, bool]) -> Tensor | None:
    """Return the weights of each head for one sequence, (nh, T, T); None if the module shows none.

    Args:
        module: The reference's, in eval mode.
        inputs: Its input, (1, T, C).
        attributes: Those with which its weights can be seen, such as flash=False. They stay set.
    """
    for name, value in attributes.items():
        setattr(module, name, value)
    with torch.no_grad(), _Shares(inputs.shape[1]) as shares:
        module(inputs)
    if shares.last is None:
        return None
    weights: Tensor = shares.last[0]
    return weights if weights.dim() == 3 else weights[None]
