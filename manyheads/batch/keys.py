"""The key of each attempt: a hash of everything that the result of one exercise depends on.

What belongs to another exercise is not in it, so a new exercise, or a changed one, is no reason to grade others again.
Titles, dates and what is decided are not in it either: they are applied to results whenever these are shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import yaml

from ..course import Course, Exercise
from ..result import ExerciseResult
from ..submission import Submission, Unreadable, largest, read_bytes
from .plan import GradePlan
from .sources import files_below, graded_from

PACKAGES = ("torch", "numpy", "einops", "pytest")
ENDS = (".py", ".ipynb")  # the suffixes of attempts
SUFFIXES = (".py", ".yaml", ".json")  # the suffixes of the files that the engine consists of
ENGINE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Keys:
    """Computes keys for one grading plan. The course's files are read once, when they are first needed.

    run: the part that all attempts share: engine, versions, options, limits, secret.
    texts: what grader/texts.yaml holds.
    """

    course: Course
    run: str
    texts: object
    _exercises: dict[str, str] = field(default_factory=dict)

    def of(self, submission: Submission, exercise: Exercise) -> str:
        """The key of this attempt, before it is graded."""
        handed_in = _handed_in(submission, exercise, self.course.limits.source_kib)
        return hash_of([self.of_exercise(exercise), submission.student, *handed_in])

    def of_exercise(self, exercise: Exercise) -> str:
        """The part of the key that all attempts at an exercise share."""
        if exercise.id not in self._exercises:
            names = [exercise.assignment.id, exercise.stem]
            row = exercise.row.model_dump_json(exclude={"title", "why", "bench", "generate"})
            root, files = self.course.root, graded_from(exercise)
            made_from = (f"{path.relative_to(root).as_posix()} {_digest(path)}" for path in files)
            self._exercises[exercise.id] = hash_of([self.run, *names, row, *made_from])
        return self._exercises[exercise.id]

    def of_result(self, key: str, exercise: Exercise, result: ExerciseResult) -> str:
        """The key of an attempt, with its result and the words that the course has for what the result names.

        So an entry is good for this very result: not for one that another run has written over it since.
        """
        ids = sorted({id_ for found in (*result.diagnosis, *result.also) for id_ in (found.id, *found.alternatives)})
        words = [json.dumps([id_, self._words(id_, exercise.id)], default=str) for id_ in ids]
        return hash_of([key, *words, result.model_dump_json()])

    def of_course(self) -> str:
        """A hash of all of this, by which a cluster's workers know that they would grade alike."""
        return hash_of([*map(self.of_exercise, self.course.exercises), json.dumps(self.texts, default=str)])

    def _words(self, id_: str, exercise: str) -> object:
        """The texts of a misconception, without those that other exercises have in place of them."""
        row = self.texts.get(id_) if isinstance(self.texts, Mapping) else self.texts
        if not isinstance(row, Mapping):
            return row
        overrides = row.get("overrides")
        own = overrides.get(exercise) if isinstance(overrides, Mapping) else overrides
        return [{str(name): text for name, text in row.items() if name != "overrides"}, own]


def keys_of(course: Course, plan: GradePlan) -> Keys:
    """The keys of a course, for these options."""
    options = (plan.level, plan.device, str(plan.seed), str(plan.lines))
    python = "{}.{}".format(*sys.version_info)
    versions = [f"{name} {_version(name)}" for name in PACKAGES]
    secret = hashlib.sha256(b"journal" + plan.secret).hexdigest()
    engine = (
        f"{path.relative_to(ENGINE).as_posix()} {_digest(path)}"
        for path in sorted(files_below(ENGINE))
        if path.suffix in SUFFIXES
    )
    limits = course.limits.model_dump_json()
    shared = [secret, limits, *options, python, *versions, *engine]
    return Keys(course, hash_of(shared), _read_texts(course.texts))


def files_key(submission: Submission, limit_kib: int) -> str:
    """A hash of what was handed in for the whole assignment. limit_kib: the largest file that is read."""
    files = (
        each for exercise in submission.assignment.exercises for each in _handed_in(submission, exercise, limit_kib)
    )
    return hash_of([submission.student, submission.assignment.id, *files])


def hash_of(parts: Iterable[str]) -> str:
    """One hash of several texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _handed_in(submission: Submission, exercise: Exercise, limit_kib: int) -> Iterator[str]:
    """A hash of each file that may be the attempt, or the sentence that says why it cannot be read."""
    stems = (exercise.stem, exercise.assignment.id)  # its own, and those of the whole assignment
    for path in (submission.folder / f"{stem}{end}" for stem in stems for end in ENDS):
        try:
            there = os.path.lexists(path)
            yield hashlib.sha256(read_bytes(path, largest(path.name, limit_kib))).hexdigest() if there else "missing"
        except Unreadable as error:
            yield str(error)


def _read_texts(path: Path) -> object:
    """The course's texts; where they cannot be read, what lies there: whoever grades says what is wrong with them."""
    if not path.exists():
        return {}
    data = path.read_bytes()
    try:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        return hashlib.sha256(data).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
