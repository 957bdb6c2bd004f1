"""Find sizes that an attempt has fixed, from the shapes of its answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle

from torch import Tensor

from ..box.worker.answers import Output
from ..checks.implementation import Runner
from ..checks.recording import Exchange, target_of
from .agree import agree


def has_fixed_size(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Whether an axis of the answers keeps its size although it should change, or only one number of axes works."""
    return _an_axis_is_constant(reference, exchanges) or _only_one_rank_works(reference, exchanges)


def _an_axis_is_constant(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Whether two or more answers are wrong in one axis only, and have the same size there instead of different ones."""
    sizes: dict[tuple[str, int, int, int], list[tuple[int, int]]] = defaultdict(list)
    for exchange in exchanges:
        target, leaves = target_of(exchange.call), cycle(range(exchange.call.form.count))
        outputs = zip(leaves, exchange.reply.outputs, reference.execute(exchange.call).outputs, strict=False)
        for leaf, mine, right in ((leaf, _shape(a), _shape(b)) for leaf, a, b in outputs):
            if mine is None or right is None or len(mine) != len(right):
                continue
            wrong = [axis for axis in range(len(mine)) if mine[axis] != right[axis]]
            if len(wrong) == 1:
                axis = wrong[0]
                sizes[target, leaf, axis - len(mine), len(mine)].append((mine[axis], right[axis]))
    return any(len({m for m, _ in pairs}) == 1 and len({r for _, r in pairs}) > 1 for pairs in sizes.values())


def _only_one_rank_works(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Whether a function is right for tensors with one number of axes, and raises for all others."""
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


def _shape(output: Output) -> tuple[int, ...] | None:
    return None if output.tensor is None else tuple(output.tensor.shape)
