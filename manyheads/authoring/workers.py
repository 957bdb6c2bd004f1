"""Take the steps of a release with several processes, each with a thread of its own. The caller writes the files."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..batch.orphan import end_with_parent
from ..course import load_course
from ..errors import CourseFault
from ..judge.catalogue import Catalogue
from .schedule import Schedule
from .steps import Asked, Made, Step, Workshop

LOST = "a process of the release ended before it was done. Next: course release"
Taken = tuple[Step, Asked | Made]


def take_all(workshop: Workshop, steps: Sequence[Sequence[Step]]) -> Iterator[Taken]:
    """Take all steps in this process."""
    schedule = Schedule(steps)
    while (following := schedule.next(0)) is not None:
        step, asked = following
        found = workshop.take(step, asked)
        schedule.done(step, None if isinstance(found, Made) else found)
        yield step, found


def take_all_with(jobs: int, root: Path, steps: Sequence[Sequence[Step]]) -> Iterator[Taken]:
    """Take all steps in `jobs` processes. What one of them raises ends the others at once, as Ctrl-C does."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools: list[Executor] = [
            stack.enter_context(ProcessPoolExecutor(1, context, initializer=_start, initargs=(root,)))
            for _ in range(jobs)
        ]
        with ended_at_once(LOST):
            yield from _taken(pools, Schedule(steps))


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


def _taken(pools: Sequence[Executor], schedule: Schedule) -> Iterator[Taken]:
    at_work: dict[Future[Asked | Made], tuple[int, Step]] = {}
    free = set(range(len(pools)))
    while True:
        for worker in sorted(free):
            if (following := schedule.next(worker)) is not None:
                step, asked = following
                at_work[pools[worker].submit(_take, step, asked)] = (worker, step)
                free.discard(worker)
        if not at_work:
            return
        for future in wait(at_work, return_when=FIRST_COMPLETED).done:
            worker, step = at_work.pop(future)
            found = future.result()
            free.add(worker)
            schedule.done(step, None if isinstance(found, Made) else found)
            yield step, found


@dataclass
class _Process:
    """The workshop of this process, or the exception that prevented it."""

    workshop: Workshop | None = None
    problem: Exception | None = None


_process = _Process()


def _start(root: Path) -> None:
    """Make this process a worker. An exception is stored, and raised by the first step, whose caller can handle it."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; only the caller should react
    try:
        course = load_course(root)
        _process.workshop = Workshop(course, Catalogue(course))
    except Exception as error:
        _process.problem = error


def _take(step: Step, asked: Sequence[Asked]) -> Asked | Made:
    if _process.problem is not None:
        raise _process.problem
    assert _process.workshop is not None
    return _process.workshop.take(step, asked)
