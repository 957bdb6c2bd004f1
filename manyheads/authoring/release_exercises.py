"""Make exercises/ from solutions/: the stub, its notebook, and the recordings of the answers. Only what is stale is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..course import Course, CourseError, Exercise
from ..diagnosis.bank import load_bank
from ..errors import CourseFault
from ..judge.run_checks import Catalogue
from ..whole import write_whole
from .index import Index
from .record_calls import right_answers
from .stub import stub_of
from .workers import make_all

Exercises = Sequence[Exercise]
# Of how many exercises there are, to be called after each.
Shown = Callable[[int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True)
class Written:
    """The files of exercises/, and those of all files that were written: the others lay there as they must be."""

    files: list[Path]
    written: list[Path]


def write_release(
    course: Course,
    catalogue: Catalogue,
    exercises: Exercises | None = None,
    jobs: int = 1,
    shown: Shown = lambda _: nullcontext(lambda: None),
) -> Written:
    """Write exercises/, and remove files that no longer belong there.

    exercises: write only the files of these, and remove nothing. jobs: how many processes make them.
    """
    named, index = exercises or course.exercises, Index(course)
    for exercise in named:
        stub_of(exercise)  # all of them, before anything is written
    stale = [exercise for exercise in named if not index.is_current(exercise)]
    for exercise in stale:
        _check_bank(catalogue, exercise)
    written = list[Path]()
    with shown(len(stale)) as one_more:
        for exercise, made in make_all(course, catalogue, stale, jobs):
            for path, content in made:
                if content is not None:
                    write_whole(path, content)
                    written.append(path)
            index.note(exercise, [path for path, _ in made])
            one_more()
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


def _check_bank(catalogue: Catalogue, exercise: Exercise) -> None:
    """Raise what is wrong with an exercise's bank, or with the reference that it edits."""
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
