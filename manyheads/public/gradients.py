"""What a visible check compares of gradients."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ..checks.asserts import label
from ..checks.failed import CheckFailed
from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import is_argument

ROUNDING = 1e-5  # of two sums that are equal where a gradient is that of a linear function


def gradients_arrive(each: Compared) -> None:
    """Every gradient arrives that the reference has. Raises CheckFailed."""
    _arrive(each, list(each.right.gradients))


def gradients(each: Compared) -> None:
    """Every gradient is the reference's. Raises CheckFailed."""
    _agree(each, list(each.right.gradients))


def argument_gradients_arrive(each: Compared) -> None:
    """As `gradients_arrive`, of the tensors that are passed, where the answer has the reference's shape: with another one
    no gradient was asked for. What layers that are passed hold may be copied by a right attempt, all of it or nothing.
    Raises CheckFailed."""
    shapes = [None if o.tensor is None else tuple(o.tensor.shape) for o in each.reply.outputs]
    if shapes == [o.shape for o in each.right.outputs]:
        held = [name for name in each.right.gradients if not is_argument(name)]
        is_used = any(each.found.gradients.get(name) is not None for name in held)
        _arrive(each, [*_arguments(each), *(held if is_used else ())])


def argument_gradients(each: Compared) -> None:
    """As `gradients`, of the tensors that are passed. Raises CheckFailed."""
    _agree(each, _arguments(each))


def adjoint(each: Compared) -> None:
    """The gradient weighs the argument as the cotangent weighs the answer: so it is where a function is linear, whichever
    linear function it is. Raises CheckFailed."""
    (name, *others), cotangent = _arguments(each) or [""], each.call.cotangent
    mine, answers = each.reply.gradients.get(name), [o.tensor for o in each.reply.outputs]
    if others or mine is None or not isinstance(cotangent, Tensor) or len(answers) != 1 or answers[0] is None:
        return
    answer, argument = answers[0], each.call.arguments[name]
    if isinstance(argument, Tensor) and answer.shape == cotangent.shape and mine.shape == argument.shape:
        weighed = answer.double() * cotangent
        off = float((weighed.sum() - (argument * mine.double()).sum()).abs())
        if not off <= ROUNDING * max(float(weighed.abs().sum()), 1e-30):
            raise CheckFailed("the gradient that comes back is not that of the output")


def _arguments(each: Compared) -> list[str]:
    return [name for name in each.right.gradients if is_argument(name)]


def _arrive(each: Compared, names: list[str]) -> None:
    mine, right = each.found.gradients, each.right.gradients
    cut = [name for name in names if right[name] is not None and mine.get(name) is None]
    if cut:
        raise CheckFailed(f"no gradient reaches {' and '.join(map(label, cut))}")


def _agree(each: Compared, names: list[str]) -> None:
    mine = {name: each.found.gradients.get(name) for name in names}
    right = {name: each.right.gradients[name] for name in names}
    found, expected = (replace(r, gradients=g) for r, g in ((each.found, mine), (each.right, right)))
    if not found.agrees(expected, ("gradients",)):
        raise CheckFailed("the gradients differ from the expected ones")
