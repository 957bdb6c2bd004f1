"""Pictures of wrong attempts' answers on public inputs beside the expected ones, for an instructor's report.

Attempts are run again, in the box, on the calls that `course plot` shows a student. Nothing hidden is asked or shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from .plot_content import Picture, pictures

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


def draw_wrong(course: Course, box: Box, wanted: Sequence[Drawable]) -> Iterator[tuple[Key, tuple[Picture, ...]]]:
    """Yield the pictures of each attempt that differ on public inputs. Attempts with the same code are drawn once.

    Nothing that a student does raises. box: one that has been proved.
    """
    known: dict[str, tuple[str, list[Example]]] = {}
    drawn: dict[tuple[str, str], tuple[Picture, ...]] = {}
    for each in wanted:
        if (id_ := each.exercise.id) not in known:
            recording = read(each.exercise.fingerprints)
            known[id_] = recording.stub, examples(each.exercise, recording)
        untouched, chosen = known[id_]
        source = read_exercise(each.folder, each.exercise, untouched, course.limits.source_kib)
        if source.missing or source.problem or code_digest(source.source) == untouched:
            yield each.key, ()
            continue
        if (id_, source.digest) not in drawn:
            drawn[id_, source.digest] = _draw(box, course, source, chosen)
        yield each.key, drawn[id_, source.digest]


def _draw(box: Box, course: Course, source: AttemptSource, chosen: Sequence[Example]) -> tuple[Picture, ...]:
    followed = follow(box, course.limits.for_worker(), source, chosen)
    try:
        return tuple([picture for picture in pictures(followed.shown) if picture.differs][:MOST])
    except (RuntimeError, ValueError, TypeError, IndexError):  # tensors that cannot be drawn
        return ()


def _may_help(result: ExerciseResult) -> bool:
    outcomes = {check.outcome for check in result.checks}
    return bool(outcomes & {"failed", "error"}) and not outcomes & {"crashed", "timeout"}
