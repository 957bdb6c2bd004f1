"""The journal: which results are on disk, exercise by exercise, with a hash of everything that each depends on.

With it a stopped run continues where it stopped, and a repeated run grades only what has changed. An incomplete line,
which a power cut can leave, is ignored.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
SEEDS = 1_000_000  # easily typed; nobody can compute a run's inputs from it without the course's secret


@contextmanager
def alone_in(folder: Path, submissions: Sequence[Submission]) -> Iterator[None]:
    """Hold a folder of results for one run, whose results go to regular files there, until the process ends in any way.

    Where there are no such locks, as on Windows, nothing is held. Raises CourseFault where another run holds it, or a link or a
    folder stands where a file is to be written.
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
    own = (LOCK, NAME, not_graded.NAME, changed_points.NAME, changed_points.UNFINISHED)
    results = [result_path(folder, submission.student, submission.assignment.id) for submission in submissions]
    for path in [*(folder / name for name in own), *results]:
        within = path.parent if path.parent != folder else path
        if link := next((each for each in (within, path) if each.is_symlink()), None):
            raise CourseFault(f"{link} is a link, and nothing is written through it. Next: remove it")
        wrong = f"{path} is a folder, where a file" if path.is_dir() else ""
        if within != path and within.exists() and not within.is_dir():
            wrong = f"{within} is a file, where a folder"
        if wrong:
            raise CourseFault(f"{wrong} is to be written. Next: move it elsewhere, or give --out another folder")


@dataclass(frozen=True)
class Journal:
    """The journal of one folder of results, for one grading plan."""

    folder: Path
    keys: Keys
    lines: dict[str, dict[str, str]]  # "student/assignment" -> exercise -> key of the result

    def holds(self, submission: Submission, exercise: Exercise, key: str, result: ExerciseResult | None) -> bool:
        """Return whether this result is noted as that of the attempt with this key."""
        noted = self.lines.get(_name(submission), {}).get(exercise.id)
        return noted is not None and result is not None and noted == self.keys.of_result(key, exercise, result)

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
        graded = {exercise.id: exercise for exercise in result.exercises if exercise.is_graded and exercise.id in keys}
        exercises = [exercise for exercise in submission.assignment.exercises if exercise.id in graded]
        noted = {e.id: self.keys.of_result(keys[e.id], e, graded[e.id]) for e in exercises}
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


def seed_of_run(folder: Path, assignments: Iterable[str], given: int | None, *, in_part: bool) -> int:
    """Return the seed that is given; else that of the results in the folder, which the run goes on with; else a new one.

    in_part: whether what they hold of some exercises stays: then it is their seed, because a result states one. Raises
    CourseFault where they have another one than is given, or several.
    """
    seeds = Counter[int]()
    for path in (path for assignment in assignments for path in sorted(folder.glob(f"*/{assignment}.json"))):
        try:
            seeds[int(json.loads(path.read_bytes())["seed"])] += 1
        except (OSError, ValueError, TypeError, LookupError):  # it is no result
            continue
    before = seeds.most_common(1)[0][0] if seeds else None
    if in_part and before is not None and set(seeds) != {before if given is None else given}:
        raise CourseFault(
            f"what {folder} holds of the other exercises has the seed {', '.join(map(str, sorted(seeds)))}, and a result "
            "states one seed. Next: the same command without --seed and --exercise, or with another --out"
        )
    if given is not None:
        return given
    return secrets.randbelow(SEEDS) if before is None else before
