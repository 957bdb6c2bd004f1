"""Make exercises/ from solutions/: the stub, its notebook, and the recordings of the answers. Only what is stale is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..course import Course, CourseError, Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.recording_file import read_kill_matrix
from ..errors import CourseFault
from ..judge.catalogue import Catalogue
from ..whole import write_whole
from .files import Released
from .index import Index
from .record_calls import right_answers
from .release_steps import Made, Step, Workshop, recording_steps
from .reuse import may_be_kept
from .stub import stub_of
from .workers import Taken, take_all, take_all_with

Exercises = Sequence[Exercise]
Shown = Callable[
    [int], AbstractContextManager[Callable[[], None]]
]  # of how many steps there are: to be called after each


@dataclass(frozen=True)
class Written:
    """The files of exercises/, and those of all files that were written: the others lay there as they must be."""

    files: list[Path]
    written: list[Path]


def released_files(course: Course, catalogue: Catalogue, exercises: Exercises | None = None) -> Iterator[Released]:
    """Yield the files of all exercises, or of these exercises, made anew. Raises CourseFault."""
    workshop = Workshop(course, catalogue)
    for exercise in exercises or course.exercises:
        yield from workshop.files(exercise, workshop.ask_all(exercise))


def write_release(
    course: Course,
    catalogue: Catalogue,
    exercises: Exercises | None = None,
    jobs: int = 1,
    fresh: bool = False,
    shown: Shown = lambda _: nullcontext(lambda: None),
) -> Written:
    """Write exercises/, and remove files that no longer belong there.

    exercises: write only the files of these, and remove nothing. jobs: how many processes make them. fresh: make also what is
    known to be current anew.
    """
    named, index = exercises or course.exercises, Index(course)
    for exercise in named:
        stub_of(exercise)  # all of them, before anything is written
    stale = [exercise for exercise in named if fresh or not index.is_current(exercise)]
    steps = [_recording(catalogue, exercise, index, fresh=fresh) for exercise in stale]
    written, of_students, recorded_from = list[Path](), defaultdict[str, list[Path]](list), dict[str, str]()
    with shown(sum(map(len, steps))) as one_more:
        for step, made in _taken(course, catalogue, steps, jobs):
            if isinstance(made, Made):
                written += _write(made)
                of_students[step.exercise] += [path for path, _ in made.files]
                recorded_from[step.exercise] = made.recorded_from  # the last step's stays
            one_more()
    for exercise in stale:
        index.note(exercise, of_students[exercise.id], recorded_from[exercise.id])
    index.write(course.exercises)
    files = [path for exercise in named for path in index.files(exercise)]
    for stray in stray_files(course, files) if exercises is None else ():
        stray.unlink()
    return Written(files, written)


def stray_files(course: Course, files: Sequence[Path]) -> list[Path]:
    """Return the files in exercises/ that have no source: neither in solutions/ nor, for another nbgrader assignment, in source/."""
    known, root = set(files), course.root / "exercises"
    ours = {assignment.id for assignment in course.assignments}
    others = {path.name for path in (course.root / "source").glob("*") if path.is_dir()} - ours
    found = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return [path for path in found if path not in known and path.relative_to(root).parts[0] not in others]


def _recording(catalogue: Catalogue, exercise: Exercise, index: Index, *, fresh: bool) -> list[Step]:
    try:
        bank = load_bank(exercise)
    except CourseError:  # where the reference is broken, that is what to say, not which edits no longer fit it
        right_answers(catalogue, exercise)
        raise
    if not bank.mutants:
        raise CourseFault(
            f"{exercise.misconceptions} lists no mutant, so no mistake can be named. "
            f"Next: write one in MUTANTS, then course release {exercise.id}"
        )
    kills = read_kill_matrix(exercise) is None or index.is_altered(exercise.fingerprints)
    if not (kills or fresh) and may_be_kept(exercise, recorded_from := index.recorded_from(exercise)):
        return [Step("files", exercise.id, recorded_from=recorded_from)]
    return recording_steps(exercise, kills=kills)


def _taken(course: Course, catalogue: Catalogue, steps: Sequence[Sequence[Step]], jobs: int) -> Iterator[Taken]:
    """Take the steps. Processes are started where there are steps for more than one: to start takes each some seconds."""
    long = (step.kind in ("calls", "kills") or bool(step.recorded_from) for of_one in steps for step in of_one)
    jobs = min(jobs, sum(long))
    if jobs > 1:
        return take_all_with(jobs, course.root, steps)
    return take_all(Workshop(course, catalogue), steps)


def _write(made: Made) -> list[Path]:
    """Write what is not as it must be. Returns the paths of the files."""
    new = [(path, content) for path, content in made.files if content is not None]
    for path, content in new:
        write_whole(path, content)
    return [path for path, _ in new]
