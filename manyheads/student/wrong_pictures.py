"""Pictures of wrong attempts' answers on public inputs beside the expected ones, for an instructor's report.

Attempts are run again, in the box, on the calls that `course plot` shows a student. Nothing hidden is asked or shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..box.level import Box
from ..course import Course, Exercise
from ..diagnosis.recording_file import read
from ..result import ExerciseResult, Result
from ..submission import AttemptSource, code_digest, read_exercise
from .choose_example import examples
from .example import Example
from .follow import follow
from .plot_content import Band, all_bands

MOST = 4  # the most pictures of one attempt
Key = tuple[str, str, str]  # student, assignment, exercise


@dataclass(frozen=True)
class Drawable:
    """An attempt for which a picture may help, and the folder of its submission."""

    key: Key
    folder: Path
    exercise: Exercise


def drawable(course: Course, results: Sequence[Result], folders: Mapping[tuple[str, str], Path]) -> list[Drawable]:
    """Return the attempts that failed a check without crashing or running out of time. folders: by student and assignment."""
    named = {(e.assignment.id, e.id): e for e in course.exercises}
    return [
        Drawable((result.student, result.assignment, other.id), folder, exercise)
        for result in results
        if (folder := folders.get((result.student, result.assignment))) is not None
        for other in result.exercises
        if (exercise := named.get((result.assignment, other.id))) is not None and _may_help(other)
    ]


class Painter:
    """Draws a class's attempts. Attempts with the same code are drawn once."""

    def __init__(self, course: Course, box: Box) -> None:
        """`box`: a box that has been proved."""
        self._course, self._box = course, box
        self._examples: dict[str, tuple[str, list[Example]]] = {}
        self._drawn: dict[tuple[str, str], tuple[Band, ...]] = {}

    def draw(self, wanted: Drawable) -> tuple[Band, ...]:
        """Return the most informative pictures; empty if nothing differs on public inputs. Nothing that a student does raises."""
        untouched, chosen = self._known(wanted.exercise)
        source = read_exercise(wanted.folder, wanted.exercise, untouched, self._course.limits.source_kib)
        if source.missing or source.problem or code_digest(source.source) == untouched:
            return ()
        key = (wanted.exercise.id, source.digest)
        if key not in self._drawn:
            self._drawn[key] = self._draw(source, chosen)
        return self._drawn[key]

    def _known(self, exercise: Exercise) -> tuple[str, list[Example]]:
        if exercise.id not in self._examples:
            recording = read(exercise.fingerprints)
            self._examples[exercise.id] = recording.stub, examples(exercise, recording, by_head=True)
        return self._examples[exercise.id]

    def _draw(self, source: AttemptSource, chosen: Sequence[Example]) -> tuple[Band, ...]:
        followed = follow(self._box, self._course.limits.for_worker(), source, chosen)
        try:
            return tuple(most_informative(all_bands(followed.shown)))
        except (RuntimeError, ValueError, TypeError, IndexError):  # tensors that cannot be drawn
            return ()


def most_informative(bands: Sequence[Band]) -> list[Band]:
    """Return the bands that differ: of each table only the first such head, and at most MOST."""
    first: dict[str, Band] = {}
    for band in bands:
        if band.differs:
            first.setdefault(band.title.rpartition(", head ")[0] or band.title, band)
    return list(first.values())[:MOST]


def _may_help(result: ExerciseResult) -> bool:
    outcomes = {check.outcome for check in result.checks}
    return bool(outcomes & {"failed", "error"}) and not outcomes & {"crashed", "timeout"}
