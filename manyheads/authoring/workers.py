"""Make the files of exercises in several processes, each with a thread of its own. The caller writes the files."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ..course import Course, Exercise, load_course
from ..diagnosis.bank import load_bank
from ..errors import CourseFault
from ..judge.process_ties import end_with_parent
from ..judge.run_checks import Catalogue
from .files import Released, files_of
from .fingerprints import recorded_file
from .stub import stub_of

# Objects between two searches for garbage, which else take a sixth of the time: most of what is made stays.
GARBAGE = 500_000
LOST = "a process of the release ended before it was done. Next: course release"
# The files of an exercise, by path; no content where what lies there is as it must be.
Made = list[tuple[Path, bytes | None]]


def made_anew(catalogue: Catalogue, exercise: Exercise) -> Iterator[Released]:
    """Yield the files of an exercise, made anew. Raises CourseFault."""
    yield from files_of(catalogue, exercise, stub_of(exercise), recorded_file(catalogue, exercise))


def make_all(
    course: Course, catalogue: Catalogue, exercises: Sequence[Exercise], jobs: int
) -> Iterator[tuple[Exercise, Made]]:
    """Yield exercises with their files, as they are made, in `jobs` processes if there are several.

    What one of them raises ends the others at once, as Ctrl-C does. Processes take some seconds to start.
    """
    jobs = min(jobs, len(exercises))
    if jobs <= 1:
        yield from ((exercise, _made(catalogue, exercise)) for exercise in exercises)
        return
    longest_first = sorted(exercises, key=lambda exercise: -len(load_bank(exercise).mutants))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start) as pool, ended_at_once(LOST):
        at_work = {pool.submit(_make, course.root, exercise.id): exercise for exercise in longest_first}
        for future in as_completed(at_work):
            yield at_work[future], future.result()


def _made(catalogue: Catalogue, exercise: Exercise) -> Made:
    files = made_anew(catalogue, exercise)
    return [(file.path, None if file.is_in_step() else file.content) for file in files]


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


def _start() -> None:
    """Make this process a worker."""
    end_with_parent()
    gc.set_threshold(GARBAGE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; only the caller should react


@cache
def _course(root: Path) -> tuple[Course, Catalogue]:
    """Return what this process works on. What prevents it is raised by the first exercise, whose caller can handle it."""
    course = load_course(root)
    return course, Catalogue(course)


def _make(root: Path, id_: str) -> Made:
    course, catalogue = _course(root)
    return _made(catalogue, next(exercise for exercise in course.exercises if exercise.id == id_))
