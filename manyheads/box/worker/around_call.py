"""Do what a check asks for around a call (`Call.around`): before the call, and during it.

A module is called once and moved, or compared with another one, before the call. An exception, or a
difference in the results, is planted during the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

from .messages import (
    Around,
    Build,
    ComparedWithModule,
    MovedAfterACall,
    OperationLimit,
    PlantedDifference,
)
from .nn_modules import is_same, make_module


def context_of(
    around: Around | None, subject: Any, namespace: Mapping[str, object]
) -> AbstractContextManager[object]:
    """Prepare the call, and return the context manager in which to make it.

    If nothing happens during the call, the context manager does nothing. An exception in the
    attempt's code is passed on.

    Args:
        around: `Call.around`.
        subject: the function or the module that will be called.
        namespace: the names that the attempt defines.
    """
    match around:
        case MovedAfterACall():
            _call_and_move(around, subject)
        case ComparedWithModule():
            _report_comparison(around, subject, namespace)
        case OperationLimit():
            return _CountedOperations(around.count)
        case PlantedDifference(flag=""):
            return _PlantedInFusedAttention(around)
        case PlantedDifference():
            return _planted_in_modules(around)
    return nullcontext()


def _call_and_move(around: MovedAfterACall, module: nn.Module) -> None:
    """Call the module with tensors of ones, and move it to the meta device."""
    dtype_of_weights = next((p.dtype for p in module.parameters()), torch.float32)
    args = [
        torch.ones(arg.shape, dtype=getattr(torch, arg.dtype) if arg.dtype else dtype_of_weights)
        for arg in around.args
    ]
    module(*args)
    module.to("meta")


class _PrintedOtherwise(nn.Module):
    """Has the names that a subclass may define without computing anything else."""

    __init__ = extra_repr = __repr__ = None  # type: ignore[assignment]


def _report_comparison(
    around: ComparedWithModule, subject: nn.Module, namespace: Mapping[str, object]
) -> None:
    """Set the attribute of the subject that reports the result of the comparison."""
    build = Build(around.target, around.args, skip_init=True)
    expected = make_module(namespace, build).to("meta")
    report = around.report if _is_made_as(subject, expected) else "something else"
    vars(subject)[around.attribute] = report


def _is_made_as(subject: nn.Module, expected: nn.Module) -> bool:
    """Return whether no difference is found between the computations of the two modules.

    The subject must have the expected module's class, or a subclass that redefines no name except
    those of `_PrintedOtherwise`. Its attributes must equal the attributes of the expected module,
    apart from weights, and apart from additional attributes that hide no name of the class.
    """
    subclass = type(subject)
    base = type(expected)
    if not issubclass(subclass, base):
        return False
    compared = {
        name: value
        for name, value in vars(subject).items()
        # An attribute may hide a method, such as `forward`.
        if name in vars(expected) or hasattr(subclass, name)
    }
    if not is_same(compared | {"training": expected.training}, vars(expected)):
        return False
    kept_names = set(dir(expected)) - set(vars(_PrintedOtherwise))
    subclasses = subclass.__mro__[: subclass.__mro__.index(base)]
    return not any(kept_names & set(vars(each_class)) for each_class in subclasses)


class _CountedOperations(TorchFunctionMode):
    """Raises GeneratorExit in place of the call of a torch function with number `count`, from 1."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._remaining = count

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._remaining -= 1
        if not self._remaining:
            raise GeneratorExit
        return func(*args, **(kwargs or {}))


# the fraction of the golden ratio: its multiples modulo 1 are evenly spread, and none repeats
_STEP = 0.6180339887498949
_SHARE_OF_OTHERS = 0.05  # the share of the amount that all other positions get


class _PlantedInFusedAttention(TorchFunctionMode):
    """Adds the difference to the results of F.scaled_dot_product_attention."""

    def __init__(self, difference: PlantedDifference) -> None:
        super().__init__()
        self._difference = difference

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if func is not F.scaled_dot_product_attention:
            return output
        return _with_difference(output, self._difference)


def _planted_in_modules(difference: PlantedDifference) -> AbstractContextManager[object]:
    """Return a context in which the difference is added to the output of each flagged module."""

    def add(module: nn.Module, args: object, output: object) -> object:
        is_flagged = getattr(module, difference.flag, False)
        return _with_difference(output, difference) if is_flagged else output

    # The annotation of torch says that a hook returns nothing; its documentation says otherwise.
    return register_module_forward_hook(add)  # type: ignore[arg-type]


def _with_difference(output: object, difference: PlantedDifference) -> object:
    """Return a tensor with the difference added, and any other value or empty tensor unchanged.

    The difference at each position is amount × share × (2 + tanh(output)). The share is 1 at one
    position, and at most 0.025 in size at the others.
    """
    if not isinstance(output, Tensor) or not output.numel():
        return output
    positions = torch.arange(output.numel(), dtype=torch.float64)
    shares = _SHARE_OF_OTHERS * ((positions * _STEP) % 1.0 - 0.5)
    shares[int(difference.position * output.numel())] = 1.0
    shares = shares.view(output.shape).to(output.device, output.dtype)
    return output + difference.amount * shares * (2 + torch.tanh(output))
