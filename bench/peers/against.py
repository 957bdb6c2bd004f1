"""Ours against the peers and against the floor, pair by pair, in turn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from ..places import REPOSITORY
from ..table import table
from .cost import Cost
from .field import Field
from .handed_in import HandedIn
from .record import Record
from .spread import Contestant, in_turn, spread

Pair = tuple[Cost, Cost]  # ours, the other's


class Floor:
    """One of floor.py's ways to run every check without a box."""

    def __init__(self, *words: object) -> None:
        """What floor.py is called with."""
        self._command = [sys.executable, "-m", "bench.peers.floor", *map(str, words)]

    def run(self) -> Cost:
        """What a submission costs in a warm process."""
        done = subprocess.run(self._command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
        return Cost(**json.loads(done.stdout))


def against_peers(field: Field, names: Sequence[str], ours_size: int, batch: int, pairs: int, record: Record) -> str:
    """A table: what a submission costs each grader, and the ratios. Raises NotMeasured."""
    ours = field.ours(ours_size)
    peers = [field.peer(name, batch) for name in names]
    found = _rounds(ours, peers, [peer.grader.name for peer in peers], pairs, record)
    mine = [pair[0] for costs in found for pair in costs]
    rows = [[_label(ours), str(ours_size), *_seconds(mine), "1", "1"]]
    rows += [
        [_label(peer), str(batch), *_seconds([theirs for _, theirs in costs]), *_ratios([(b, a) for a, b in costs])]
        for peer, costs in zip(peers, found, strict=True)
    ]
    head = ["grader", "batch", "wall s a submission", "CPU s", "its wall time / ours", "its CPU time / ours"]
    return table(head, rows)


def against_floor(field: Field, size: int, pairs: int, record: Record) -> str:
    """A table: what isolation, fresh processes and the whole command cost above the checks themselves."""
    mine = {f"`course grade --jobs {jobs}`": field.ours(size, jobs) for jobs in (1, 2)}
    ours = next(iter(mine.values())).folder
    floors = {
        "called": Floor("called", ours),
        "tests of one pytest session": Floor("tested", ours),
        "in our judge's session": Floor("judged", ours / "course", ours / "submitted"),
    }
    found = {name: _rounds(each, list(floors.values()), list(floors), pairs, record) for name, each in mine.items()}
    rows = []
    for i, name in enumerate(floors):
        costs = [floor for of_jobs in found.values() for _, floor in of_jobs[i]]
        rows.append([f"every check in one warm process, {name}", *_milliseconds(costs), *[""] * len(floors)])
    for name, of_jobs in found.items():
        costs = [cost for of_floor in of_jobs for cost, _ in of_floor]
        ratios = [str(spread(cost.wall / floor.wall for cost, floor in of_floor)) for of_floor in of_jobs]
        rows.append([name, *_milliseconds(costs), *ratios])
    return table(["", "wall ms a submission", "CPU ms", *(f"wall time / {name}" for name in floors)], rows)


def _rounds(
    ours: HandedIn, others: Sequence[Contestant], names: Sequence[str], pairs: int, record: Record
) -> list[list[Pair]]:
    """For each of the others its pairs."""
    found: list[list[Pair]] = [[] for _ in others]
    for number in range(pairs):
        for other, name, costs in zip(others, names, found, strict=True):
            costs.append(in_turn(ours, other, number))
            mine, theirs = costs[-1]
            record.note(f"pair {number + 1}, ours", mine)
            record.note(f"pair {number + 1}, {name}", theirs)
    return found


def _label(handed_in: HandedIn) -> str:
    return f"{handed_in.grader.name} ({handed_in.grader.version()})"


def _seconds(costs: Sequence[Cost]) -> list[str]:
    return [str(spread(c.wall for c in costs)), str(spread(c.cpu for c in costs))]


def _milliseconds(costs: Sequence[Cost]) -> list[str]:
    return [str(spread(1000 * c.wall for c in costs)), str(spread(1000 * c.cpu for c in costs))]


def _ratios(pairs: Sequence[Pair]) -> list[str]:
    return [str(spread(a.wall / b.wall for a, b in pairs)), str(spread(a.cpu / b.cpu for a, b in pairs))]
