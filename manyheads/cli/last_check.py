"""What the last check of an exercise found, kept so that a file that has not changed is not run again.

One file an exercise, in the folder `.course`, which git ignores. It holds good while all that a result depends on is the same:
the attempt's text, the fingerprint file, course.yaml, the engine and the version of torch. Where it can be used, torch is
not imported, which alone takes a second. A file that cannot be read or written is as good as none.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..course import Course, CourseError, Exercise
from ..course.load import FOLDER
from ..errors import restore
from ..result import ExerciseResult
from ..submission import AttemptSource
from ..whole import write_whole
from .options import exercise_named

CHECKED_LAST = "the one that was checked last and is not done"  # what a command is about without a name
NAME = "last-check"  # the folder in FOLDER
ENGINE = Path(__file__).parents[1]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Facts(_Model):
    """What is asked of a fingerprint file where nothing is run. checks: id and title, in the order of their layers."""

    stub: str  # code_digest of the untouched stub
    checks: tuple[tuple[str, str], ...]


class _Kept(_Model):
    key: str  # a hash of all that is not the attempt
    facts: Facts
    attempt: str = ""  # a hash of the attempt
    result: ExerciseResult | None = None


def facts(exercise: Exercise) -> Facts:
    """Return the facts of an exercise. Raises CourseError if its fingerprint file is missing or cannot be read."""
    kept = _read(exercise)
    if kept is not None:
        return kept.facts
    from ..diagnosis.recording_file import read

    recording = read(fingerprint_path(exercise))
    checks = tuple((check.id, check.title) for check in sorted(recording.checks, key=lambda c: c.layer))
    found = Facts(stub=recording.stub, checks=checks)
    _write(exercise, _Kept(key=_key(exercise), facts=found))
    return found


def last_result(exercise: Exercise, source: AttemptSource) -> ExerciseResult | None:
    """Return what the last check of this very attempt found; None if there was none."""
    kept = _read(exercise)
    return kept.result if kept is not None and kept.attempt == _digest(source) else None


def was_stopped(result: ExerciseResult) -> bool:
    """Return whether an attempt ran out of time or crashed, which a busy machine may have caused: worth another try."""
    return any(check.outcome in ("timeout", "crashed") for check in result.checks)


def keep(exercise: Exercise, source: AttemptSource, result: ExerciseResult) -> None:
    """Keep what a check of this attempt has found."""
    _write(exercise, _Kept(key=_key(exercise), facts=facts(exercise), attempt=_digest(source), result=result))


def exercise_meant(course: Course, name: str | None, command: str) -> Exercise:
    """Return the exercise with this name; without one, that which was checked last, of those that are not done if there are any.

    Raises CourseError if there is none of the name, or nothing was checked yet.
    """
    if name is not None:
        return exercise_named(course, name, command)
    kept = ((exercise, _read(exercise)) for exercise in course.exercises)
    checked = {exercise: each.result for exercise, each in kept if each is not None and each.result is not None}
    open_ones = [exercise for exercise, result in checked.items() if not result.is_done]
    if not checked:
        following = f"course {command} {course.exercises[0].id}"
        raise CourseError(f"{command} which exercise? None was checked here yet. Next: {following}")
    return max(open_ones or checked, key=lambda exercise: _path(exercise).stat().st_mtime_ns)


def fingerprint_path(exercise: Exercise) -> Path:
    """Return the path of the fingerprint file. Raises CourseError if it is missing."""
    path = exercise.fingerprints
    if not path.exists():
        raise CourseError(f"{path} is missing. {restore(path)}")
    return path


def _read(exercise: Exercise) -> _Kept | None:
    with suppress(OSError, ValueError):
        kept = _Kept.model_validate_json(_path(exercise).read_bytes())
        return kept if kept.key == _key(exercise) else None
    return None


def _write(exercise: Exercise, kept: _Kept) -> None:
    path = _path(exercise)
    with suppress(OSError):
        (exercise.root / FOLDER).mkdir(mode=0o700, exist_ok=True)
        write_whole(path, kept.model_dump_json().encode())


def _path(exercise: Exercise) -> Path:
    return exercise.root / FOLDER / NAME / f"{exercise.assignment.id}.{exercise.stem}.json"


def _digest(source: AttemptSource) -> str:
    return hashlib.sha256(repr(source).encode("utf-8", "surrogatepass")).hexdigest()


def _key(exercise: Exercise) -> str:
    files = (fingerprint_path(exercise), exercise.root / "course.yaml")
    parts = [*_versions(), *(_hash_of(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=64)
def _hash_of(path: Path, changed: int, size: int) -> str:
    """Return a hash of the file, which is read again where its time or its size has changed."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    """Return the versions of the packages, and the time of each file of the engine: a checkout changes without its version."""
    files = sorted(ENGINE.rglob("*.py"))
    times = [f"{path} {status.st_mtime_ns} {status.st_size}" for path in files if (status := path.stat())]
    return (*(_version(name) for name in ("manyheads", "torch", "numpy", "einops")), *times)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
