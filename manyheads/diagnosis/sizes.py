"""Find sizes that an attempt has fixed, from the shapes of its answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle

from ..box.worker.answers import Output
from ..checks.implementation import Runner
from ..checks.recording import Exchange, target_of


def has_fixed_size(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Whether an axis of the answers keeps its size although it should change.

    Two or more answers are wrong in one axis only, and have the same size there instead of different ones.
    """
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


def _shape(output: Output) -> tuple[int, ...] | None:
    return None if output.tensor is None else tuple(output.tensor.shape)
