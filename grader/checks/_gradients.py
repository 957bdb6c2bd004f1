"""Compare an attempt's gradients with finite differences of its own outputs.

If the values are wrong too, the reference's gradients say nothing about the attempt's graph. Finite differences do: a
wrong value with an intact graph has the gradient of that value, a cut graph does not.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from manyheads.checks.answer import Answer

Tensors = Mapping[str, Tensor]
_COARSE, _FINE = 2e-5, 1e-5  # steps for inputs around 1, in float64
_NEAR, _FAR = 0.01, 0.02  # along a direction through all tensors, large enough for float32


def is_cut(
    output: Callable[[Tensors, Tensor], Tensor], weights: Tensors, x: Tensor, g: Tensor, got: Answer, want: Answer
) -> bool:
    """Return whether a gradient differs from the finite difference of the attempt's output.

    A gradient is a number for each direction: it is compared along the direction in which it differs most from the
    reference's, and along a random one where that says nothing.
    output: (weights, x) → the attempt's output. g: the cotangent of the call that `got` and `want` answer.
    """
    tensors = {**weights, "args.0": x}
    for name, tensor in tensors.items():
        if name not in got.reply.gradients:
            continue
        found, expected = got.gradient(name), want.gradient(name)
        found = torch.zeros_like(tensor) if found is None else found
        random = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0), dtype=tensor.dtype)
        for along in (random,) if expected is None else (_scaled(found - expected), random):

            def derivative(step: float, name: str = name, along: Tensor = along) -> float:
                moved = ({**tensors, name: tensors[name] + sign * step * along} for sign in (1, -1))
                ahead, behind = (output({k: m[k] for k in weights}, m["args.0"]) for m in moved)
                return float(((ahead - behind) * g).sum() / (2 * step))

            fine, claimed = derivative(_FINE), float((found * along).sum())
            if abs(claimed - fine) <= 1e-2 * abs(fine):
                continue  # as most often, and the attempt need not be asked whether that can be trusted
            coarse = derivative(_COARSE)
            if math.isfinite(coarse) and abs(coarse - fine) < 1e-4 * abs(fine):
                return True
    return False


def _scaled(direction: Tensor) -> Tensor:
    """Return the direction with a root mean square of 1."""
    return direction / direction.square().mean().sqrt().clamp(min=1e-30)


def weights_without_effect(ask: Callable[[Tensors], Answer], weights: Tensors) -> list[str]:
    """Return the names of the matrices that do not affect the output: reversing their columns changes nothing, at the same seed."""
    before = ask(weights).output.nan_to_num()
    changed = {name: {**weights, name: tensor.flip(-1)} for name, tensor in weights.items() if tensor.dim() > 1}
    return [name for name, others in changed.items() if torch.equal(ask(others).output.nan_to_num(), before)]


def contradicts_itself(
    ask: Callable[[Tensors, Tensor], Answer],
    got: Answer,
    names: Sequence[str],
    state: Tensors,
    x: Tensor,
    target: Tensors,
    cotangent: Tensor,
) -> bool:
    """Return whether the gradients contradict the attempt's own output: a step along the missing part of the gradient shows it.

    ask: (weights, x) → the attempt's answer. target: the reference's gradients, by name.
    """
    own = {name: got.gradient(name) for name in names}
    mine = {name: torch.zeros_like(target[name]) if g is None else g for name, g in own.items()}
    if any(mine[name].shape != target[name].shape or not mine[name].isfinite().all() for name in names):
        return False
    lacking = {name: target[name] - mine[name] for name in names}
    size = sum(float(d.square().sum()) for d in lacking.values()) ** 0.5
    unit = {name: d / size for name, d in lacking.items()}

    def derivative(h: float) -> float:
        ends = []
        for step in (h, -h):
            weights = {name: tensor + step * unit.get(name, 0.0) for name, tensor in state.items()}
            ends.append(float((ask(weights, x + step * unit["args.0"]).output * cotangent).sum()))
        return (ends[0] - ends[1]) / (2 * h)

    near = derivative(_NEAR)
    claimed = sum(float((mine[name] * unit[name]).sum()) for name in names)
    largest = max(float(g.norm()) for g in (*mine.values(), *target.values()))
    if not abs(near - claimed) > 0.05 * max(abs(near), abs(claimed), 0.1 * largest):
        return False
    return abs(near - derivative(_FAR)) <= 0.01 * max(abs(near), 0.1 * largest)
