"""Sizes that an attempt has fixed, whatever its arguments are: seen in the shapes of what it answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from torch import Tensor

from ..box.worker.messages import Call
from ..checks.implementation import Runner
from ..checks.recording import Exchange
from .agree import agree


def has_fixed_size(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Whether some axis of the answers stays as it is while it should change, or one number of axes alone is served."""
    return _an_axis_stays(reference, exchanges) or _one_rank_alone_works(reference, exchanges)


def _an_axis_stays(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Two answers or more that are wrong in one axis only, with the same size there, where different ones belong."""
    sizes: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    for exchange in exchanges:
        mine, right = _shape(exchange.reply.outputs), _shape(reference.execute(exchange.call).outputs)
        if mine is None or right is None or len(mine) != len(right):
            continue
        wrong = [axis for axis in range(len(mine)) if mine[axis] != right[axis]]
        if len(wrong) == 1:
            axis = wrong[0]
            sizes[_name(exchange.call), axis - len(mine), len(mine)].append((mine[axis], right[axis]))
    return any(len({m for m, _ in pairs}) == 1 and len({r for _, r in pairs}) > 1 for pairs in sizes.values())


def _one_rank_alone_works(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """A function that is right for every tensor of one number of axes, and raises for every other."""
    works: dict[str, set[int]] = defaultdict(set)
    raises: dict[str, set[int]] = defaultdict(set)
    for exchange in exchanges:
        first = next((a for a in exchange.call.args if isinstance(a, Tensor)), None)
        if first is None or not isinstance(exchange.call.subject, str):
            continue
        right = agree(exchange.reply, reference.execute(exchange.call))
        if right or exchange.reply.raised is not None:
            (works if right else raises)[exchange.call.subject].add(first.dim())
    return any(len(ranks) == 1 and raises[name] and not ranks & raises[name] for name, ranks in works.items())


def _shape(outputs: Sequence[object]) -> tuple[int, ...] | None:
    tensor = getattr(outputs[0], "tensor", None) if outputs else None
    return tuple(tensor.shape) if isinstance(tensor, Tensor) else None


def _name(call: Call) -> str:
    return call.subject if isinstance(call.subject, str) else call.subject.target
