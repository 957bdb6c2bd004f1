"""What wrong attempts answer on public inputs, beside what is expected: for an instructor's report.

Attempts run again, in the box, on the calls that `course plot` shows a student. Nothing hidden is asked or shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..box.level import Box
from ..course import Course, Exercise
from ..public import heads
from ..public.file import read
from ..result import ExerciseResult, Result
from ..submission import AttemptSource, code_digest, read_attempt
from .calls import Look, looks, with_heads
from .corners import TABLES, TIMES
from .follow import follow
from .plot import Band, all_bands

MOST = 4  # pictures of one attempt
Key = tuple[str, str, str]  # student, exercise


@dataclass(frozen=True)
class Drawable:
    """An attempt that a picture may help with, and the folder it was handed in with."""

    key: Key
    folder: Path
    exercise: Exercise


def drawable(course: Course, results: Sequence[Result], folders: Mapping[tuple[str, str], Path]) -> list[Drawable]:
    """The attempts that failed a check and neither crashed nor ran out of time. folders: by student and assignment."""
    named = {(e.assignment.id, e.id): e for e in course.exercises}
    return [
        Drawable((result.student, result.assignment, each.id), folder, exercise)
        for result in results
        if (folder := folders.get((result.student, result.assignment))) is not None
        for each in result.exercises
        if (exercise := named.get((result.assignment, each.id))) is not None and _may_help(each)
    ]


class Painter:
    """Use one for a class: what was handed in twice is drawn once."""

    def __init__(self, course: Course, box: Box) -> None:
        """`box`: one that has been proved."""
        self._course, self._box = course, box
        self._looks: dict[str, tuple[str, list[Look]]] = {}
        self._drawn: dict[tuple[str, str], tuple[Band, ...]] = {}

    def draw(self, wanted: Drawable) -> tuple[Band, ...]:
        """What tells most; empty where nothing differs on public inputs. Raises nothing for what a student did."""
        untouched, chosen = self._known(wanted.exercise)
        stem = wanted.exercise.stem
        source = read_attempt(wanted.folder, stem, untouched, self._course.limits.source_kib)
        if source.missing or source.problem or code_digest(source.source) == untouched:
            return ()
        key = (wanted.exercise.id, source.digest)
        if key not in self._drawn:
            self._drawn[key] = self._draw(source, chosen)
        return self._drawn[key]

    def _known(self, exercise: Exercise) -> tuple[str, list[Look]]:
        if exercise.id not in self._looks:
            fingerprints = read(exercise.fingerprints)
            recorded = heads.read(exercise.heads)
            chosen = with_heads(looks(exercise, fingerprints, by_head=True), recorded)
            self._looks[exercise.id] = fingerprints.content.stub, chosen
        return self._looks[exercise.id]

    def _draw(self, source: AttemptSource, chosen: Sequence[Look]) -> tuple[Band, ...]:
        followed = follow(self._box, self._course.limits.for_worker(), source, chosen, TABLES, TIMES)
        try:
            return tuple(telling(all_bands(chosen, followed.traced)))
        except (RuntimeError, ValueError, TypeError, IndexError):  # tensors that no picture was thought of for
            return ()


def telling(bands: Sequence[Band]) -> list[Band]:
    """Of everything that is not as expected the first head, and not more than can be looked at."""
    first: dict[str, Band] = {}
    for band in bands:
        if band.differs:
            first.setdefault(band.title.rpartition(", head ")[0] or band.title, band)
    return list(first.values())[:MOST]


def _may_help(result: ExerciseResult) -> bool:
    outcomes = {check.outcome for check in result.checks}
    return bool(outcomes & {"failed", "error"}) and not outcomes & {"crashed", "timeout"}
