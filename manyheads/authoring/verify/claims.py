"""Test all claims about a course, in the order in which failures should be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...box.level import Box
from ...course import Course, Exercise
from ...judge.catalogue import Catalogue
from .attempts import verify_attempts, verify_watched
from .claim import Claim
from .empty import verify_empty
from .lines import verify_lines
from .mutants import verify_mutants
from .silent import verify_silent
from .structure import POINTS, verify_structure

__all__ = ["Claim", "VerifyEffort", "verify_course"]


@dataclass(frozen=True)
class VerifyEffort:
    """How many cases to try."""

    seeds: int = 2
    pairs: int | None = 40  # pairs of mutants for each exercise; None: all


def verify_course(course: Course, box: Box, exercises: Sequence[Exercise], effort: VerifyEffort) -> Iterator[Claim]:
    """Yield each claim as soon as it is tested. Raises what a broken course raises (CourseError, GraderFault, …).

    Where points do not add up, nothing is graded, so no other claim is tested.
    """
    catalogue = Catalogue(course)
    some = len(exercises) < len(course.exercises)
    for claim in verify_structure(course, catalogue, exercises if some else None):
        yield claim
        if claim.about == POINTS and not claim.kept:
            return
    for exercise in exercises:
        yield from verify_mutants(course, catalogue, exercise, effort.pairs)
    yield from verify_attempts(course, box, exercises, effort.seeds)
    yield from (verify_watched(catalogue, exercise) for exercise in exercises)
    yield from verify_silent(course, box, exercises)
    yield from verify_empty(course, catalogue, box, exercises)
    yield from verify_lines(course, box, exercises)
