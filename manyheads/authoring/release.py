"""Make exercises/ from solutions/: the stub, its notebook, and the recordings of the answers.

Text is the same bytes every time. A recording is the same numbers; if the one on disk is equivalent, it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checks.outcome import CheckOutcome
from ..course import Course, CourseError, Exercise
from ..judge.catalogue import Catalogue
from ..public.file import loaded
from .bank_page import bank_page, page_path
from .fingerprints import record
from .heads import record_heads
from .kill_matrix import write_kill_matrix
from .notebook import Group, stub_notebook
from .recorded_calls import right_answers
from .recordings import in_step
from .strip import strip

Exercises = Sequence[Exercise]


@dataclass(frozen=True)
class Released:
    """A file of exercises/ as it must be. `recorded`: whether it is a recording, which may differ by rounding."""

    path: Path
    content: bytes
    recorded: bool = False

    def is_in_step(self) -> bool:
        """Whether the file on disk is as it must be."""
        if not self.path.exists():
            return False
        there = self.path.read_bytes()
        return in_step(there, self.content) if self.recorded else there == self.content


def released_files(course: Course, catalogue: Catalogue, exercises: Exercises | None = None) -> Iterator[Released]:
    """The files of all exercises, or of these exercises. Raises SourceError, CourseError."""
    for exercise in exercises or course.exercises:
        yield from _of_exercise(course, catalogue, exercise)


def write_release(course: Course, catalogue: Catalogue, exercises: Exercises | None = None) -> list[Path]:
    """Write exercises/, and remove files that no longer belong there. Returns the paths of its files.

    It also writes the diagnosis tables, the kill matrices and the page of the bank, which are for instructors.
    exercises: write only the files of these, and remove nothing.
    """
    for exercise in exercises or course.exercises:
        stub_of(course, exercise)
        right_answers(catalogue, exercise)
    for exercise in course.exercises:  # all of them: the page shows every exercise
        write_kill_matrix(catalogue, exercise)
    files = list(released_files(course, catalogue, exercises))
    for exercise in exercises or course.exercises:
        catalogue.tables.write(exercise)
    for file in files:
        if not file.is_in_step():
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_bytes(file.content)
    for stray in stray_files(course, files) if exercises is None else ():
        stray.unlink()
    page_path(course).parent.mkdir(exist_ok=True)
    page_path(course).write_text(bank_page(course, catalogue), encoding="utf-8")
    return [file.path for file in files]


def stray_files(course: Course, files: list[Released]) -> list[Path]:
    """The files in exercises/ that have no source: neither in solutions/ nor, for another nbgrader assignment, in source/."""
    known, root = {file.path for file in files}, course.root / "exercises"
    ours = {assignment.id for assignment in course.assignments}
    others = {path.name for path in (course.root / "source").glob("*") if path.is_dir()} - ours
    found = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return [path for path in found if path not in known and path.relative_to(root).parts[0] not in others]


def stub_of(course: Course, exercise: Exercise) -> str:
    """The student's starting point. Raises SourceError, CourseError."""
    path = exercise.solution
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(
            f"{path} is missing, which course.yaml requires. Next: write it, or mend course.yaml"
        ) from None
    return strip(source, str(path.relative_to(course.root)))


def _of_exercise(course: Course, catalogue: Catalogue, exercise: Exercise) -> Iterator[Released]:
    stub = stub_of(course, exercise)
    yield Released(exercise.script, stub.encode())
    notebook = stub_notebook(stub, exercise.id, groups(catalogue, exercise))
    yield Released(exercise.notebook, notebook.encode())
    new = record(catalogue, exercise, stub)
    fingerprints = Released(exercise.fingerprints, new, recorded=True)
    yield fingerprints
    # The key of recorded heads is an answer in the fingerprint file, so take the file that is kept.
    kept = fingerprints.path.read_bytes() if fingerprints.is_in_step() else new
    if heads := record_heads(exercise, loaded(kept)):
        yield Released(exercise.heads, heads, recorded=True)
    curve = exercise.curve
    if exercise.train is not None and curve.exists():  # kept as it is: recording it takes minutes (`--curves`)
        yield Released(curve, curve.read_bytes())


def groups(catalogue: Catalogue, exercise: Exercise) -> list[Group]:
    """The hidden checks of an exercise, grouped by layer."""
    layers: dict[str, list[CheckOutcome]] = {}
    for check in sorted(catalogue.checks(exercise), key=lambda c: c.layer):
        layers.setdefault(check.layer.name.lower(), []).append(check)
    return [
        Group(name, sum(c.points for c in checks), tuple(c.title for c in checks), tuple(c.id for c in checks))
        for name, checks in layers.items()
    ]
