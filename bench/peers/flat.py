"""Whether the last submission of a large class costs more than one of a small class, in time or in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..processes import Peak
from ..table import table
from .cost import Cost
from .field import Field
from .handed_in import HandedIn
from .record import Record
from .spread import Spread, spread

MIB = 1 << 20
EVERY = 0.25  # seconds between two looks at the memory


def flatness(field: Field, sizes: Sequence[int], rounds: int, record: Record) -> str:
    """A table with a row for each size; `sizes` grow. Raises NotMeasured."""
    classes = [field.ours(size) for size in sizes]
    seen: list[list[tuple[Cost, int, int]]] = [[] for _ in sizes]
    for number in range(rounds):
        for handed_in, costs in zip(classes, seen, strict=True):
            costs.append(_watched(handed_in))
            record.note(f"round {number + 1}, each of {handed_in.size}", costs[-1][0])
    further = [None, *(_further(a, b, *sizes_) for (a, b), sizes_ in zip(pairwise(seen), pairwise(sizes), strict=True))]
    head = ["submissions", "wall ms each", "CPU ms each", "CPU ms for each further one", "command, MiB", "judge, MiB"]
    rows = [
        [
            str(size),
            str(spread(1000 * cost.wall for cost, _, _ in costs)),
            str(spread(1000 * cost.cpu for cost, _, _ in costs)),
            "" if more is None else str(more),
            f"{max(command for _, command, _ in costs) / MIB:.0f}",
            f"{max(judge for _, _, judge in costs) / MIB:.0f}",
        ]
        for size, costs, more in zip(sizes, seen, further, strict=True)
    ]
    return table(head, rows)


def _watched(handed_in: HandedIn) -> tuple[Cost, int, int]:
    """The cost of a submission, and the most that the command and the largest process below it have held."""
    running = handed_in.start()
    with Peak(running.pid, EVERY) as peak:
        cost = handed_in.finish(running)
    return cost, peak.held.pop(running.pid), peak.bytes


def _further(
    smaller: Sequence[tuple[Cost, int, int]], larger: Sequence[tuple[Cost, int, int]], small: int, large: int
) -> Spread:
    """CPU milliseconds of a submission that the larger class has more: the start of everything is not in it."""
    return spread(
        1000 * (b.cpu * large - a.cpu * small) / (large - small)
        for (a, *_), (b, *_) in zip(smaller, larger, strict=True)
    )
