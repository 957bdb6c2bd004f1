"""The journal: which results are on disk, exercise by exercise, with a hash of everything that each depends on.

With it a stopped run continues where it stopped, and a repeated run grades only what has changed. An incomplete line,
which a power cut can leave, is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..course import Course, Exercise
from ..errors import CourseFault
from ..result import ExerciseResult, Result, result_path
from ..submission import Submission
from ..submission import left_over as not_graded
from ..whole import naming
from . import changed_points
from .judge_process import GradePlan
from .keys import Keys, keys_of

NAME, LOCK = ".journal", ".lock"


@contextmanager
def alone_in(folder: Path, submissions: Sequence[Submission]) -> Iterator[None]:
    """Hold a folder of results for one run, whose results go to regular files there.

    The system lets go of it when the process ends, however that is. Where there are no such locks, as on Windows, nothing is
    held.

    Raises:
        CourseFault: another run holds it, or a link or a folder stands where a file is to be written.
    """
    _refuse_links(folder, submissions)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        if not _is_held(file.fileno(), folder / LOCK):
            file.seek(0)
            said = f"another course grade (process {file.read(20).strip() or 'unknown'}) is writing to {folder}"
            raise CourseFault(f"{said}. Next: wait for its end, or give --out another folder")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file, and nobody a folder with results
                (folder / LOCK).unlink()
                folder.rmdir()


def _is_held(descriptor: int, path: Path) -> bool:
    """Return whether this process holds the file now, and it is the one that others find there."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


def _refuse_links(folder: Path, submissions: Sequence[Submission]) -> None:
    results = [result_path(folder, submission.student, submission.assignment.id) for submission in submissions]
    own = (LOCK, NAME, not_graded.NAME, changed_points.NAME, changed_points.UNFINISHED)
    for path in [*(folder / name for name in own), *results]:
        within = path.parent if path.parent != folder else path
        if link := next((each for each in (within, path) if each.is_symlink()), None):
            raise CourseFault(f"{link} is a link, and nothing is written through it. Next: remove it")
        if path.is_dir() or (within != path and within.exists() and not within.is_dir()):
            wrong = f"{path} is a folder, where a file" if path.is_dir() else f"{within} is a file, where a folder"
            raise CourseFault(f"{wrong} is to be written. Next: move it elsewhere, or give --out another folder")


@dataclass(frozen=True)
class Journal:
    """The journal of one folder of results, for one grading plan."""

    folder: Path
    keys: Keys
    lines: dict[str, dict[str, str]]  # "student/assignment" -> exercise -> key of the result

    def holds(self, submission: Submission, exercise: Exercise, key: str, result: ExerciseResult) -> bool:
        """Return whether this result is noted as that of the attempt with this key."""
        noted = self.lines.get(_name(submission), {}).get(exercise.id)
        return noted is not None and noted == self.keys.of_result(key, exercise, result)

    def on_disk(self, submission: Submission) -> Result | None:
        """Return the result on disk, whatever its keys; None if none can be read."""
        try:
            path = result_path(self.folder, submission.student, submission.assignment.id)
            return Result.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def note(self, submission: Submission, keys: Mapping[str, str], result: Result) -> None:
        """Record that these exercises of the result are on disk, without those that are not graded: they are tried again.

        keys: of the exercises, computed before grading, as files may change.
        """
        found = {exercise.id: exercise for exercise in result.exercises}
        every = [exercise for exercise in submission.assignment.exercises if exercise.id in keys]
        exercises = [each for each in every if found[each.id].is_graded]
        noted = {
            exercise.id: self.keys.of_result(keys[exercise.id], exercise, found[exercise.id]) for exercise in exercises
        }
        with naming(self.folder / NAME), (self.folder / NAME).open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps([_name(submission), noted])}\n")  # the leading newline ends an incomplete line
            file.flush()
            os.fsync(file.fileno())


def open_journal(folder: Path, course: Course, plan: GradePlan) -> Journal:
    """Read the journal of a folder; it is empty if there is none."""
    lines: dict[str, dict[str, str]] = {}
    path = folder / NAME
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            name, noted = json.loads(line)
            lines.setdefault(str(name), {}).update((str(exercise), str(key)) for exercise, key in noted.items())
        except (ValueError, TypeError, AttributeError):
            continue
    return Journal(folder, keys_of(course, plan), lines)


def _name(submission: Submission) -> str:
    return f"{submission.student}/{submission.assignment.id}"
