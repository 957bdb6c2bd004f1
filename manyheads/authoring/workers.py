"""Take the steps of a release with several processes, each with a thread of its own. The caller writes the files."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..course import load_course
from ..errors import CourseFault
from ..judge.catalogue import Catalogue
from ..judge.process_ties import end_with_parent
from .release_steps import Asked, Made, Step, Workshop

# Which step of a release a free worker takes next.


@dataclass
class _Work:
    """The steps for one exercise. left: nobody has taken them. missing: how many steps its files still wait for."""

    left: list[Step]
    last: Step
    missing: int
    found: dict[tuple[str, int], Asked] = field(default_factory=dict)  # by the kind of step, and its first mutant
    workers: set[int] = field(default_factory=set)


class Schedule:
    """Hands out steps. A worker stays with its exercise as long as there is work, for it knows the calls already."""

    def __init__(self, steps: Sequence[Sequence[Step]]) -> None:
        """Take the steps of each exercise, of which the last makes its files."""
        self._works = {
            # The last is ready at once where it needs nothing of others.
            of_one[-1].exercise: _Work(list(of_one[:-1] or of_one), of_one[-1], len(of_one) - 1)
            for of_one in steps
        }

    def next(self, worker: int) -> tuple[Step, list[Asked]] | None:
        """Return a step, and what it needs of others; None while nothing can be begun."""
        ready = [work for work in self._works.values() if work.left]
        if not ready:
            return None
        # Its own exercise, then one that nobody has, then the one with most left: the largest are begun first.
        work = max(ready, key=lambda work: (worker in work.workers, not work.workers, len(work.left)))
        work.workers.add(worker)
        step = work.left.pop(0)
        return step, [work.found[place] for place in sorted(work.found)] if step == work.last else []

    def done(self, step: Step, found: Asked | Made) -> None:
        """Take down that a step is done."""
        work = self._works[step.exercise]
        if isinstance(found, Made):
            return
        work.found[step.kind, step.mutants.start] = found
        work.missing -= 1
        if not work.missing:
            work.left.append(work.last)


LOST = "a process of the release ended before it was done. Next: course release"
Taken = tuple[Step, Asked | Made]


def take_all(workshop: Workshop, steps: Sequence[Sequence[Step]]) -> Iterator[Taken]:
    """Take all steps in this process."""
    schedule = Schedule(steps)
    while (following := schedule.next(0)) is not None:
        step, asked = following
        found = workshop.take(step, asked)
        schedule.done(step, found)
        yield step, found


def take_all_with(jobs: int, root: Path, steps: Sequence[Sequence[Step]]) -> Iterator[Taken]:
    """Take all steps in `jobs` processes. What one of them raises ends the others at once, as Ctrl-C does."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools: list[Executor] = [
            stack.enter_context(ProcessPoolExecutor(1, context, initializer=_start)) for _ in range(jobs)
        ]
        with ended_at_once(LOST):
            yield from _taken(pools, root, Schedule(steps))


@contextmanager
def ended_at_once(lost: str) -> Iterator[None]:
    """Kill this process's children at the end: after an exception they are at work, and else they have nothing to save.

    Raises CourseFault with the sentence `lost` where one ended by itself.
    """
    try:
        yield
    except BrokenProcessPool:
        raise CourseFault(lost) from None
    finally:
        for child in multiprocessing.active_children():
            child.kill()


def _taken(pools: Sequence[Executor], root: Path, schedule: Schedule) -> Iterator[Taken]:
    at_work: dict[Future[Asked | Made], tuple[int, Step]] = {}
    free = set(range(len(pools)))
    while True:
        for worker in sorted(free):
            if (following := schedule.next(worker)) is not None:
                step, asked = following
                at_work[pools[worker].submit(_take, root, step, asked)] = (worker, step)
                free.discard(worker)
        if not at_work:
            return
        for future in wait(at_work, return_when=FIRST_COMPLETED).done:
            worker, step = at_work.pop(future)
            found = future.result()
            free.add(worker)
            schedule.done(step, found)
            yield step, found


def _start() -> None:
    """Make this process a worker."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; only the caller should react


@cache
def _workshop(root: Path) -> Workshop:
    """Return this process's workshop. What prevents it is raised by the first step, whose caller can handle it."""
    course = load_course(root)
    return Workshop(course, Catalogue(course))


def _take(root: Path, step: Step, asked: Sequence[Asked]) -> Asked | Made:
    return _workshop(root).take(step, asked)
