"""Compare an attempt's gradients with finite differences of its outputs.

If the values are wrong too, the reference's gradients say nothing about the attempt's graph. Finite
differences do: a wrong value with an intact graph has the gradient of that value, a cut graph does
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from .answer import Answer
from .asserts import agrees, assert_gradients_match
from .hidden_check import CheckFailed
from .runner import Implementation

Tensors = Mapping[str, Tensor]
_NEAR, _FAR = 0.01, 0.02  # along a direction through all tensors, large enough for float32


def is_cut(
    output: Callable[[Tensors, Tensor], Tensor],
    weights: Tensors,
    x: Tensor,
    g: Tensor,
    got: Answer,
    want: Answer,
) -> bool:
    """Return whether the gradients contradict the attempt's own output.

    A step along the missing part of the gradient shows it.

    Args:
        output: returns the attempt's output for these weights and this x.
        weights: the weights of the call, or its further arguments, by name.
        x: the first argument of the call.
        g: the cotangent of the call.
        got: the attempt's answer to the call.
        want: the reference's answer to it.
    """
    tensors = {**weights, "args.0": x}
    names = [name for name in tensors if name in got.reply.gradients]
    actual, target = (_gradients_or_zeros(answer, names, tensors) for answer in (got, want))
    if any(
        actual[name].shape != target[name].shape or not actual[name].isfinite().all()
        for name in names
    ):
        return False
    lacking = {name: target[name] - actual[name] for name in names}
    size = sum(float(d.square().sum()) for d in lacking.values()) ** 0.5
    if not size:
        return False

    def output_at(step: float) -> Tensor:
        point = {name: t + step * lacking.get(name, 0.0) / size for name, t in tensors.items()}
        return output({name: point[name] for name in weights}, point["args.0"])

    def derivative(step: float) -> float:
        ahead, behind = output_at(step), output_at(-step)
        return float(((ahead - behind) * g).sum() / (2 * step))

    near = derivative(_NEAR)
    claimed = sum(float((actual[name] * lacking[name]).sum()) for name in names) / size
    largest = max(float(gradient.norm()) for gradient in (*actual.values(), *target.values()))
    if not abs(near - claimed) > 0.05 * max(abs(near), abs(claimed), 0.1 * largest):
        return False
    return abs(near - derivative(_FAR)) <= 0.01 * max(abs(near), 0.1 * largest)


def is_cut_in_part(attempt: Implementation, got: Answer, want: Answer, cotangent: Tensor) -> bool:
    """Return whether the values of a function are right and its gradient contradicts them.

    If the values are wrong, a detached part is a consequence: for example, a detached maximum
    cancels only in right values.

    Args:
        attempt: the attempt that gave the answer.
        got: its answer to a call of the function, with gradients.
        want: the reference's answer to the same call.
        cotangent: the cotangent of that call.
    """
    if got.reply.mutated or not agrees(got, want):
        return False
    name, inputs = str(got.call.subject), list[Any](got.call.args)

    def output(other_args: Tensors, first_arg: Tensor) -> Tensor:
        named_args = {**other_args, "args.0": first_arg}
        args = [named_args.get(f"args.{i}", arg) for i, arg in enumerate(inputs)]
        return attempt.call(name, *args).output

    tensors = {
        f"args.{i}": arg
        for i, arg in enumerate(inputs)
        if i and f"args.{i}" in want.reply.gradients
    }
    return is_cut(output, tensors, inputs[0], cotangent, got, want)


def _gradients_or_zeros(answer: Answer, names: list[str], tensors: Tensors) -> dict[str, Tensor]:
    """Return the gradients of these tensors by name, with zeros for those that are missing."""
    gradients = {}
    for name in names:
        gradient = answer.gradient(name)
        gradients[name] = torch.zeros_like(tensors[name]) if gradient is None else gradient
    return gradients


def expect_gradients(
    got: Answer,
    want: Answer,
    names: Iterable[str],
    cut: Callable[[], bool],
    path: str = "",
    missing: str = "",
) -> None:
    """Fail unless the gradients of these names are the reference's.

    Args:
        got: the attempt's answer to a call with gradients.
        want: the reference's answer to the same call.
        names: the names of the gradients, as `assert_gradients_match` takes them.
        cut: returns whether the graph is to blame if they are not.
        path: the evidence's name for the path that the call takes.
        missing: the misconception that a missing gradient proves on its own.
    """
    try:
        assert_gradients_match(got, want, *names, suspect_if_cut=missing)
    except CheckFailed as fault:
        if got.raised is not None:
            raise
        suspect = fault.suspect or ("gradient_cut" if cut() else "")
        raise CheckFailed(f"{path}: {fault}" if path else str(fault), suspect) from None


def weights_without_effect(ask: Callable[[Tensors], Answer], weights: Tensors) -> list[str]:
    """Return the names of the matrices that do not affect the output.

    Reversing the columns of such a matrix changes nothing, at the same seed.
    """
    baseline = ask(weights).output.nan_to_num()
    changed = {
        name: {**weights, name: tensor.flip(-1)}
        for name, tensor in weights.items()
        if tensor.dim() > 1
    }
    return [
        name
        for name, edited in changed.items()
        if torch.equal(ask(edited).output.nan_to_num(), baseline)
    ]
