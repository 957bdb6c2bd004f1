"""Gradients of what a call returned, as a check asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def gradients_of(
    pairs: Sequence[tuple[object, Tensor | None]], wanted: Mapping[str, Tensor], second: bool
) -> dict[str, Tensor | None]:
    """The gradients of the sum of (output * cotangent).sum() for each of these tensors, None where none arrives.

    Empty where an output with a cotangent is no tensor of its shape.

    Args:
        pairs: outputs, each with its cotangent.
        wanted: by their names in the reply.
        second: also the gradients of the sum of squares of the arguments' gradients.
    """
    asked = [(output, cotangent) for output, cotangent in pairs if cotangent is not None]
    if not asked or not all(isinstance(o, Tensor) and o.shape == cotangent.shape for o, cotangent in asked):
        return {}
    reached = [(o, cotangent) for o, cotangent in asked if isinstance(o, Tensor) and o.requires_grad]
    if not reached:
        return dict.fromkeys(wanted)
    # grad() of a scalar: with grad_outputs torch imports sympy, which costs 180 ms in every fresh process.
    sums = [(output * cotangent.to(output.dtype)).sum() for output, cotangent in reached]
    total = sums[0] if len(sums) == 1 else torch.stack(sums).sum()
    found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True, create_graph=second)
    gradients: dict[str, Tensor | None] = dict(zip(wanted, found, strict=True))
    if second:
        of_args = {name: g for name, g in gradients.items() if name.startswith("args.") and g is not None}
        squares = torch.stack([(g * g).sum() for g in of_args.values()]).sum()
        twice = torch.autograd.grad(squares, [wanted[name] for name in of_args], allow_unused=True)
        gradients.update({f"second.{name}": g for name, g in zip(of_args, twice, strict=True)})
    return {name: None if g is None else g.detach().cpu() for name, g in gradients.items()}
