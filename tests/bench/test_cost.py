"""A submission costs `course grade` a small part of what a pytest process of its own costs, and the last no more than the first.

Why this cannot fail by luck. It compares CPU seconds, not seconds: waiting for other programs is not in them. What a
busy machine adds to them (cold caches, a slower clock) it adds to both sides of a ratio, which are measured within one
try, and every bound leaves room for a factor of two. A bound is missed only where three tries, each measured
anew, miss it: a burst of noise meets one of them, a change that costs meets all.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.graders import ManyHeads, PlainPytest
from bench.peers.checks import NAME
from bench.peers.cost import Running
from bench.peers.forms import assignment
from bench.peers.handed_in import HandedIn, control, right_ones
from bench.peers.small_course import ASSIGNMENT, lay_out
from bench.processes import Watcher

SIZE = 80
EARLY, LATE = (2, 17), (60, 75)  # how many results there are when a part of the run begins, and when it ends
TRIES = 3
LOOK_EVERY = 0.02  # seconds


@dataclass(frozen=True)
class Costs:
    """CPU seconds of a submission, in one try."""

    process: float  # plain pytest
    whole: float  # `course grade`, its start and its end included
    further: float  # `course grade`, without its start and its end
    early: float
    late: float


# Measured at a load of 9 on two cores: 23 to 25, 43 to 51, 0.9 to 1.2. What grows with every submission can make the last 7.
BOUNDS: dict[str, Callable[[Costs], bool]] = {
    "the whole command is 12 times cheaper": lambda c: c.process > 12 * c.whole,
    "a further submission is 20 times cheaper": lambda c: c.process > 20 * c.further,
    "a late submission costs less than 2.5 early ones": lambda c: c.late < 2.5 * c.early,
}


class Progress(Watcher):
    """How many results there were, and the CPU seconds spent by then, look by look."""

    def __init__(self, running: Running, results: Path) -> None:
        super().__init__(running.pid, LOOK_EVERY)
        self._running, self._results = running, results
        self._seen: list[tuple[int, float]] = []

    def look(self) -> None:
        self._seen.append((sum(1 for _ in self._results.glob("*/*.json")), self._running.cpu()))

    def each(self, after: int, until: int) -> float:
        """CPU seconds of a submission among those from `after` to `until`."""
        (n, started), (m, ended) = (next(s for s in self._seen if s[0] >= count) for count in (after, until))
        return (ended - started) / (m - n)


def measured(ours: HandedIn, process: HandedIn) -> Costs:
    """One try."""
    plain = process.run()
    running = ours.start()
    with Progress(running, ours.folder.with_name("run") / "results") as progress:
        whole = ours.finish(running)
    progress.look()
    further, early, late = (progress.each(*part) for part in ((EARLY[0], LATE[1]), EARLY, LATE))
    return Costs(plain.cpu, whole.cpu, further, early, late)


@pytest.mark.soak  # measured seconds, though of CPU: for an idle machine
@pytest.mark.timeout(1200)  # only ever met by a hang: a try takes 50 s at a load of twelve
def test_a_submission_costs_a_small_part_of_a_process_and_the_last_no_more_than_the_first(tmp_path):
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: there is no box to measure")
    # The control holds both graders to the same scores: a right attempt's and a wrong one's.
    attempts = {**control(), **right_ones(SIZE - len(control()))}
    ours = HandedIn(ManyHeads(lay_out, ASSIGNMENT, NAME, jobs=1), tmp_path / "ours", attempts)
    process = HandedIn(PlainPytest(assignment()), tmp_path / "pytest", control())
    missed, tries = list(BOUNDS), []
    while missed and len(tries) < TRIES:
        tries.append(measured(ours, process))
        missed = [says for says in missed if not BOUNDS[says](tries[-1])]
    assert not missed, (missed, tries)
