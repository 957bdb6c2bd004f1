"""The options of a run; the key of each attempt: a hash of everything that the result of one exercise depends on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import yaml

from ..box.names import Device, Level
from ..course import Course, Exercise
from ..course.model import with_neighbours
from ..lines.find_lines import Bounds
from ..result import ExerciseResult
from ..submission import Submission, Unreadable, largest, read_bytes

PACKAGES = ("torch", "numpy", "einops", "pytest")
ENDS = (".py", ".ipynb")  # the suffixes of attempts
SUFFIXES = (".py", ".yaml", ".json", ".txt")  # the suffixes of the files that the engine consists of
ENGINE = Path(__file__).parents[1]
DATA = ("solutions", "grader/checks", "grader/misconceptions")  # folders that hold sources, and perhaps what these read
NO_DATA = (*ENDS, ".md", ".svg")


@dataclass(frozen=True)
class Settings:
    """How a judge grades.

    seed: of everybody's inputs. It is 0 where each student has a run of their own (Gradescope, nbgrader's commands), so that
    the same code has the same points in all of them. The run of a pull request draws from a secret of its own.
    """

    secret: bytes = field(repr=False)  # not in the repr, which dask writes to its logs
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()  # ids; empty: all
    lines: bool = True  # whether to search for the line that is wrong
    dtype: str = "float64"  # the dtype of an attempt's first calls
    diagnoses: bool = True  # whether to diagnose
    bounds: Bounds = field(default_factory=Bounds)  # of that search


@dataclass(frozen=True, kw_only=True)
class GradePlan(Settings):
    """The options of a grading run: everything that a process needs to become a judge."""

    course: Path
    level: Level = Level.NAMESPACES
    tells: bool = True  # whether its judge says what is not recorded


def graded_from(exercise: Exercise) -> list[Path]:
    """Return every file that grading an attempt reads, beside the words of grader/texts.yaml; some may be missing.

    These are sources with what they import, and all data beside solutions and checks: nobody knows which a source reads.
    """
    packages = (each.with_name("__init__.py") for each in (exercise.checks, exercise.misconceptions))
    sources = {path for each in packages for path in with_neighbours(each)}
    data = (path for name in DATA for path in _files_below(exercise.root / name) if path.suffix not in NO_DATA)
    return sorted({*sources, *data, exercise.script, exercise.fingerprints, *exercise.recorded_from()})


def _files_below(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


@dataclass(frozen=True)
class Keys:
    """Computes keys for one grading plan. The course's files are read once, when they are first needed.

    What belongs to another exercise is not in a key, so a new exercise, or a changed one, is no reason to grade others
    again. Titles, dates and what is decided are not in it either: they are applied to results whenever these are shown.

    run: the part that all attempts share: engine, versions, options, limits, secret.
    texts: what grader/texts.yaml holds.
    """

    course: Course
    run: str
    texts: object
    _exercises: dict[str, str] = field(default_factory=dict)

    def of(self, submission: Submission, exercise: Exercise) -> str:
        """Return the key of this attempt, before it is graded."""
        handed_in = _handed_in(submission, exercise, self.course.limits.source_kib)
        return _hash_of([self.of_exercise(exercise), submission.student, *handed_in])

    def of_exercise(self, exercise: Exercise) -> str:
        """Return the part of the key that all attempts at an exercise share."""
        if exercise.id not in self._exercises:
            names = [exercise.assignment.id, exercise.stem]
            row = exercise.row.model_dump_json(exclude={"title", "why"})
            made_from = _named(self.course.root, graded_from(exercise))
            self._exercises[exercise.id] = _hash_of([self.run, *names, row, *made_from])
        return self._exercises[exercise.id]

    def of_result(self, key: str, exercise: Exercise, result: ExerciseResult) -> str:
        """Return the key of an attempt, with its result and the words that the course has for what the result names.

        So an entry is good for this very result: not for one that another run has written over it since.
        """
        ids = sorted({id_ for found in (*result.diagnosis, *result.also) for id_ in (found.id, *found.alternatives)})
        words = [repr((id_, self._words(id_, exercise.id))) for id_ in ids]
        return _hash_of([key, *words, result.model_dump_json()])

    def of_course(self) -> str:
        """Return a hash of all of this, by which a cluster's workers know that they would grade alike."""
        return _hash_of([*map(self.of_exercise, self.course.exercises), repr(self.texts)])

    def _words(self, id_: str, exercise: str) -> object:
        row = self.texts.get(id_) if isinstance(self.texts, Mapping) else self.texts
        if not isinstance(row, Mapping):
            return row
        own, shared = row.get("overrides"), {name: text for name, text in row.items() if name != "overrides"}
        return shared, own.get(exercise) if isinstance(own, Mapping) else own


def keys_of(course: Course, plan: GradePlan) -> Keys:
    """Return the keys of a course, for these options."""
    options = (plan.level, plan.device, str(plan.seed), str(plan.lines))
    python = "{}.{}".format(*sys.version_info)
    versions = [f"{name} {version}" for name, version in versions_of(PACKAGES).items()]
    secret = hashlib.sha256(b"journal" + plan.secret).hexdigest()
    engine = _named(ENGINE, (path for path in sorted(_files_below(ENGINE)) if path.suffix in SUFFIXES))
    limits = course.limits.model_dump_json()
    shared = [secret, limits, *options, python, *versions, *engine]
    return Keys(course, _hash_of(shared), _read_texts(course.texts))


def files_key(submission: Submission, limit_kib: int) -> str:
    """Return a hash of what was handed in for the whole assignment. limit_kib: the largest file that is read."""
    files = [digest for e in submission.assignment.exercises for digest in _handed_in(submission, e, limit_kib)]
    return _hash_of([submission.student, submission.assignment.id, *files])


def _hash_of(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _handed_in(submission: Submission, exercise: Exercise, limit_kib: int) -> Iterator[str]:
    """Yield a hash of each file that may be the attempt, or the sentence that says why it cannot be read."""
    stems = (exercise.stem, exercise.assignment.id)  # its own, and those of the whole assignment
    for path in (submission.folder / f"{stem}{end}" for stem in stems for end in ENDS):
        try:
            there = os.path.lexists(path)
            yield hashlib.sha256(read_bytes(path, largest(path.name, limit_kib))).hexdigest() if there else "missing"
        except Unreadable as error:
            yield str(error)


def _read_texts(path: Path) -> object:
    """Return the course's texts; where they cannot be read, what lies there: whoever grades says what is wrong with them."""
    if not path.exists():
        return {}
    data = path.read_bytes()
    try:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        return hashlib.sha256(data).hexdigest()


def _named(root: Path, files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        yield f"{path.relative_to(root).as_posix()} {digest}"


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of these packages that are installed."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
