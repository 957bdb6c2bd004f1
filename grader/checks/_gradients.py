"""Compare an attempt's gradients with finite differences of its own outputs.

If the values are wrong too, the reference's gradients say nothing about the attempt's graph. Finite differences do: a
wrong value with an intact graph has the gradient of that value, a cut graph does not.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from manyheads.checks import CheckFailed, assert_gradients_match
from manyheads.checks.answer import Answer

Tensors = Mapping[str, Tensor]
_COARSE, _FINE = 2e-5, 1e-5  # steps for inputs around 1, in float64


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
        off = None if expected is None else found - expected
        random = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0), dtype=tensor.dtype)
        for along in (random,) if off is None else (off / off.square().mean().sqrt().clamp(min=1e-30), random):

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


def expect_gradients(got: Answer, want: Answer, names: Iterable[str], cut: Callable[[], bool], path: str = "") -> None:
    """Fail unless the gradients of these names are the reference's. cut: whether the graph is to blame where they are not.

    path: as the evidence names it.
    """
    try:
        assert_gradients_match(got, want, *names)
    except CheckFailed as fault:
        if got.raised is not None:
            raise
        raise CheckFailed(f"{path}: {fault}" if path else str(fault), "gradient_cut" if cut() else "") from None


def weights_without_effect(ask: Callable[[Tensors], Answer], weights: Tensors) -> list[str]:
    """Return the names of the matrices that do not affect the output: reversing their columns changes nothing, at the same seed."""
    before = ask(weights).output.nan_to_num()
    changed = {name: {**weights, name: tensor.flip(-1)} for name, tensor in weights.items() if tensor.dim() > 1}
    return [name for name, others in changed.items() if torch.equal(ask(others).output.nan_to_num(), before)]
