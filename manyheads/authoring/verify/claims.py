"""Test all claims about a course, in the order in which failures should be read."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path

from ...box.level import open_box
from ...box.names import Level
from ...course import Course, Exercise, load_course
from ...judge.process_ties import end_with_parent
from ...judge.run_checks import Catalogue
from ..release_exercises import ended_at_once
from .attempt_claims import verify_attempts
from .bank_claims import verify_mutants
from .claim import Claim
from .file_claims import POINTS, verify_released, verify_sources
from .form_claims import verify_empty, verify_silent
from .line_claims import all_lines, verify_lines

__all__ = ["Claim", "VerifyEffort", "verify_course"]

LOST = "a process of course verify ended before it was done. Next: course verify"


@dataclass(frozen=True)
class VerifyEffort:
    """How many cases to try, and in how many processes.

    pairs: of mutants, for each exercise; None: all.
    """

    seeds: int = 5
    pairs: int | None = 40
    jobs: int = 1


def verify_course(course: Course, exercises: Sequence[Exercise], effort: VerifyEffort) -> Iterator[Claim]:
    """Yield each claim as soon as it and those before it are tested.

    Where points do not add up, nothing is graded, so no other claim is tested. Raises what a broken course raises
    (CourseError, GraderFault, …).
    """
    every, catalogue = len(exercises) == len(course.exercises), Catalogue(course)
    for claim in verify_sources(course, catalogue, exercises):
        yield claim
        if claim.about == POINTS and not claim.kept:
            return
    yield from verify_released(course, catalogue, None if every else exercises)
    # The longest first.
    tasks: list[tuple[Task, str]] = [(task, e.id) for task in (_of_the_bank, _of_attempts) for e in exercises]
    found = list[Claim]()
    with _results(course.root, tasks, effort) as results:
        for claims in results:
            yield from claims
            found += claims
    if len(exercises) > 1:
        yield all_lines(found)


def _of_the_bank(course: Course, exercise: Exercise, effort: VerifyEffort) -> list[Claim]:
    return list(verify_mutants(course, Catalogue(course), exercise, effort.pairs))


def _of_attempts(course: Course, exercise: Exercise, effort: VerifyEffort) -> list[Claim]:
    catalogue = Catalogue(course)
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        return [
            *verify_attempts(course, box, exercise, effort.seeds),
            verify_silent(course, box, exercise),
            *verify_empty(course, catalogue, box, exercise),
            *verify_lines(course, box, exercise),
        ]


Task = Callable[[Course, Exercise, VerifyEffort], list[Claim]]


@contextmanager
def _results(root: Path, tasks: Sequence[tuple[Task, str]], effort: VerifyEffort) -> Iterator[Iterator[list[Claim]]]:
    """Give the results of tasks for exercises in their order. They begin when the first is asked for.

    Raises CourseFault where a process is lost.
    """
    if effort.jobs == 1:
        yield (_do(root, effort, task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(effort.jobs, context, initializer=end_with_parent) as pool, ended_at_once(LOST):

        def results() -> Iterator[list[Claim]]:
            yield from pool.map(partial(_do, root, effort), tasks)

        yield results()


def _do(root: Path, effort: VerifyEffort, task: tuple[Task, str]) -> list[Claim]:
    course, (do, id_) = load_course(root), task
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # attempts may print, and warn
        return do(course, next(exercise for exercise in course.exercises if exercise.id == id_), effort)
