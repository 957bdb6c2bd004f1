"""The options of a grading run, and its folder of results with a journal of graded exercises.

`lock_results` locks the folder for one run. For each exercise of a submission, the journal has a
hash of everything that the result depends on. So a run after an interruption grades only the rest,
and a repeated run only exercises that have changed. Two more files list students whose points a run
changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import ValidationError

from ..box.level_and_device_names import Device, Level
from ..course import Assignment, Course, Exercise
from ..course.model import with_neighbours
from ..files import CourseFault
from ..result import (
    ExerciseResult,
    HandedIn,
    Result,
    result_path,
    with_not_readable,
    with_total,
    write_result,
)
from ..submission import Submission, Unreadable, read_bytes, size_limit
from ..submission import find_submitted_files as not_graded
from ..submission.intake_journal import append, folder_lock, rows_of
from .edit_search import Bounds

PACKAGES = ("torch", "numpy", "einops", "pytest")
ATTEMPT_SUFFIXES = (".py", ".ipynb")
# the suffixes of the files that the engine consists of
ENGINE_SUFFIXES = (".py", ".yaml", ".json", ".txt")
ENGINE = Path(__file__).parents[1]
# folders with sources, and with data that these may read
DATA_FOLDERS = ("solutions", "grader/checks", "grader/misconceptions")
# the suffixes of files there that no source reads as data
NO_DATA_SUFFIXES = (*ATTEMPT_SUFFIXES, ".md", ".svg")
# These names cannot be a student's folder, because none begins with a dot. A stopped run leaves
# CHANGING to the next run.
LOCK, JOURNAL, CHANGED, CHANGING = ".lock", ".journal", ".points-changed", ".points-changing"
# small enough to type; the inputs of a run depend on the course's secret as well
SEEDS = 1_000_000


@dataclass(frozen=True)
class Settings:
    """The options of a judge.

    Attributes:
        secret: The course's secret, from which inputs are drawn.
        seed: The seed of all inputs. If each student has a separate run (Gradescope, nbgrader's
            commands), the seed is 0, so that the same code has the same points in all runs. A pull
            request is graded with another secret.
        device: The device of the attempts.
        exercises: The ids of the exercises to grade; empty for all.
        lines: Whether to search for the wrong line.
        dtype: The dtype of an attempt's first calls. `course verify` grades in both.
        diagnoses: Whether to diagnose.
        bounds: The limits of the search for the wrong line.
    """

    secret: bytes = field(repr=False)  # not in the repr, which dask writes to its logs
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()
    lines: bool = True
    dtype: str = "float64"
    diagnoses: bool = True
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, kw_only=True)
class GradePlan(Settings):
    """The options of a grading run: everything that a process needs to become a judge.

    Attributes:
        course: The folder of the course.
        level: The isolation level of the box.
        reports_unrecorded: Whether the judge lists exercises without a recording.
    """

    course: Path
    level: Level = Level.NAMESPACES
    reports_unrecorded: bool = True


@dataclass(frozen=True)
class Graded:
    """One submission's result, and sentences about faults of the grader itself during grading."""

    submission: Submission
    result: Result
    faults: tuple[str, ...]


def graded_from(exercise: Exercise) -> list[Path]:
    """Return every file that grading an attempt reads, without grader/texts.yaml.

    These are sources with their imports, the stub, the recordings, and all data in DATA_FOLDERS,
    because any source may read it. Some of the files may be missing. The paths are sorted.
    """
    init_files = (
        path.with_name("__init__.py") for path in (exercise.checks, exercise.misconceptions)
    )
    sources = {path for init_file in init_files for path in with_neighbours(init_file)}
    data = (
        path
        for name in DATA_FOLDERS
        for path in _files_below(exercise.root / name)
        if path.suffix not in NO_DATA_SUFFIXES
    )
    return sorted(
        {*sources, *data, exercise.script, exercise.fingerprints, *exercise.recorded_from()}
    )


def _files_below(root: Path) -> Iterator[Path]:
    """Return all files in a folder and its subfolders, except those of `__pycache__`."""
    return (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


class Keys:
    """Computes keys: hashes of everything that a result depends on, for a course and a plan.

    The course's files are read once, when they are first needed.

    A key does not depend on other exercises, so a new or changed exercise is no reason to grade
    others again. It does not depend on titles, dates and decisions either: they are applied
    whenever results are shown.
    """

    def __init__(self, course: Course, plan: GradePlan) -> None:
        """Hash what all results of this run depend on."""
        self._course, self._texts = course, _read_texts(course.texts)
        self._exercise_keys: dict[str, str] = {}  # by exercise
        options = (plan.level, plan.device, str(plan.seed), str(plan.lines))
        python = "{}.{}".format(*sys.version_info)
        versions = [f"{name} {version}" for name, version in versions_of(PACKAGES).items()]
        secret = hashlib.sha256(b"journal" + plan.secret).hexdigest()
        engine = _file_hashes(
            ENGINE,
            (path for path in sorted(_files_below(ENGINE)) if path.suffix in ENGINE_SUFFIXES),
        )
        # the part of the key that all attempts of the run share
        self._run_key = _hash_of(
            [secret, course.limits.model_dump_json(), *options, python, *versions, *engine]
        )

    def of_attempt(self, submission: Submission, exercise: Exercise) -> str:
        """Return the key of this attempt, before it is graded."""
        handed_in = _handed_in(submission, exercise, self._course.limits.source_kib)
        return _hash_of([self.of_exercise(exercise), submission.student, *handed_in])

    def of_exercise(self, exercise: Exercise) -> str:
        """Return the part of the key that all attempts at an exercise share."""
        if exercise.id not in self._exercise_keys:
            names = [exercise.assignment.id, exercise.stem]
            row = exercise.row.model_dump_json(exclude={"title", "why"})
            made_from = _file_hashes(self._course.root, graded_from(exercise))
            self._exercise_keys[exercise.id] = _hash_of([self._run_key, *names, row, *made_from])
        return self._exercise_keys[exercise.id]

    def of_result(self, key: str, exercise: Exercise, result: ExerciseResult) -> str:
        """Return a hash of an attempt's key, its result, and the course's texts about the result.

        So an entry of the journal holds for this very result, and not for one that another run has
        written in its place.
        """
        ids = sorted(
            {
                id_
                for misconception in (*result.diagnosis, *result.also)
                for id_ in (misconception.id, *misconception.alternatives)
            }
        )
        words = [repr((id_, self._words(id_, exercise.id))) for id_ in ids]
        return _hash_of([key, *words, result.model_dump_json()])

    def of_course(self) -> str:
        """Return a hash of what all results of this run depend on, its exercises, and the texts.

        Workers of a cluster with the same hash grade alike.
        """
        return _hash_of([*map(self.of_exercise, self._course.exercises), repr(self._texts)])

    def _words(self, id_: str, exercise: str) -> object:
        """Return the course's texts about a misconception, with the overrides for this exercise.

        Returns None if there are none. Texts without the required structure are returned unchanged.
        """
        row = self._texts.get(id_) if isinstance(self._texts, Mapping) else self._texts
        if not isinstance(row, Mapping):
            return row
        overrides = row.get("overrides")
        shared = {name: text for name, text in row.items() if name != "overrides"}
        return shared, overrides.get(exercise) if isinstance(overrides, Mapping) else overrides


def files_key(submission: Submission, limit_kib: int) -> str:
    """Return a hash of the student and of the files handed in for the whole assignment.

    Args:
        submission: The submission.
        limit_kib: The size of the largest file that is read.
    """
    files = [
        digest
        for exercise in submission.assignment.exercises
        for digest in _handed_in(submission, exercise, limit_kib)
    ]
    return _hash_of([submission.student, submission.assignment.id, *files])


def _hash_of(texts: Iterable[str]) -> str:
    """Return a hash of these texts and their order."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()


def _handed_in(submission: Submission, exercise: Exercise, limit_kib: int) -> Iterator[str]:
    """Yield for each file that may be the attempt a hash, "missing", or why it cannot be read."""
    # the exercise's own files, and those of the whole assignment
    stems = (exercise.stem, exercise.assignment.id)
    names = [f"{stem}{suffix}" for stem in stems for suffix in ATTEMPT_SUFFIXES]
    for path in (submission.folder / name for name in names):
        if not os.path.lexists(path):
            yield "missing"
            continue
        try:
            content = read_bytes(path, size_limit(path.name, limit_kib))
        except Unreadable as error:
            yield str(error)
        else:
            yield hashlib.sha256(content).hexdigest()


def _read_texts(path: Path) -> object:
    """Return the parsed texts of the course, or {} if it has none.

    The return value becomes a part of each result's key, so it must change with the file even if
    the file is no valid YAML. Then it is a hash of the bytes. The judge reports the error.
    """
    if not path.exists():
        return {}
    data = path.read_bytes()
    try:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        return hashlib.sha256(data).hexdigest()


def _file_hashes(root: Path, files: Iterable[Path]) -> Iterator[str]:
    """Yield for each file its path below the root, and a hash of its content or "missing"."""
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        yield f"{path.relative_to(root).as_posix()} {digest}"


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of these packages, without those that are not installed."""
    versions = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def lock_results(folder: Path, submissions: Sequence[Submission]) -> AbstractContextManager[None]:
    """Lock a folder of results for one run, until the process ends in any way.

    On systems without such locks, for example Windows, nothing is locked. Raises CourseFault if
    another run has the lock. Also raises CourseFault if the run would write through a link, to a
    folder instead of a file, or to a file instead of a folder.
    """
    file_names = (LOCK, JOURNAL, not_graded.NAME, CHANGED, CHANGING)
    results = [
        result_path(folder, submission.student, submission.assignment.id)
        for submission in submissions
    ]
    for path in [*(folder / name for name in file_names), *results]:
        if path.parent != folder:  # the folder itself may be a link
            _demand_writable(path.parent, "a folder")
        _demand_writable(path, "a file")
    # `folder_lock` puts the other process in place of {}
    message = (
        f"another course grade ({{}}) is writing to {folder}. Next: wait for its end, or give "
        "--out another folder"
    )
    return folder_lock(folder / LOCK, message)


def _demand_writable(path: Path, expected: str) -> None:
    """Raise CourseFault if the path is a link, or a folder and not a file, or the reverse."""
    if path.is_symlink():
        raise CourseFault(f"{path} is a link, and nothing is written through it. Next: remove it")
    actual = "a folder" if path.is_dir() else "a file"
    if path.exists() and actual != expected:
        message = f"{path} is {actual}, where {expected} is to be written"
        raise CourseFault(f"{message}. Next: move it elsewhere, or give --out another folder")


def seed_of_run(
    folder: Path, assignments: Iterable[str], requested_seed: int | None, *, in_part: bool
) -> int:
    """Return the requested seed, or the most frequent seed of the results, or a new random one.

    Raises CourseFault if some exercises keep their results, and these have another seed.

    Args:
        folder: The folder of results.
        assignments: The ids of the assignments to grade. The seeds of their results in the folder
            are read.
        requested_seed: The seed that the command was given, if any.
        in_part: Whether some exercises keep their results. Then the seed must be theirs, because a
            result states one seed.
    """
    seeds = Counter[int]()
    for assignment in assignments:
        for path in sorted(folder.glob(f"*/{assignment}.json")):
            with suppress(OSError, ValueError, TypeError, LookupError):  # the file is not a result
                seeds[int(json.loads(path.read_bytes())["seed"])] += 1
    chosen = requested_seed
    if seeds and requested_seed is None:
        ((chosen, _),) = seeds.most_common(1)
    if in_part and seeds and set(seeds) != {chosen}:
        raise CourseFault(
            f"what {folder} holds of the other exercises has the seed "
            f"{', '.join(map(str, sorted(seeds)))}, and a result states one seed. Next: the same "
            "command without --seed and --exercise, or with another --out"
        )
    return secrets.randbelow(SEEDS) if chosen is None else chosen


def merge_results(result: Result, old: Result | None, assignment: Assignment) -> Result:
    """Return the result, with missing exercises taken from an earlier one, in the course's order.

    The total is computed again. Nothing is taken from a result with another device, isolation level
    or seed, because a result states one of each.

    Args:
        result: The new result.
        old: The earlier result, if there is one.
        assignment: The assignment.
    """
    if old is None:
        return result
    stated = (result.device, result.isolation, result.seed)
    if stated != (old.device, old.isolation, old.seed):
        return result
    exercises = {e.id: e for e in (*old.exercises, *result.exercises)}
    return with_total(result, (exercises[e.id] for e in assignment.exercises if e.id in exercises))


@dataclass
class Record:
    """Writes the results of a run: each to its file, then to the gradebook, then to the journal.

    Attributes:
        folder: The folder of results.
        keys: Computes the keys of attempts.
        enter: Enters a result in a gradebook. Entering it again changes nothing.
        chosen: The ids of the exercises to grade, if not all. The others keep their results.
        handed_in: The time when each submission was handed in, if it is known.
        counted: Applies decisions and dates to a result, for the gradebook.
        not_readable: The names of files that were handed in and cannot be read.
        faults: The faults of the grader.
        todo: For each submission, the ids of the exercises that have to be graded, with their keys.
            `unchanged_results` fills it.
        noted: For each "student/assignment", the exercises that the journal has, each with the key
            of its result (`Keys.of_result`).
    """

    folder: Path
    keys: Keys
    enter: Callable[[Result], object] | None = None
    chosen: Collection[str] = ()
    handed_in: Mapping[Submission, HandedIn] = field(default_factory=dict)
    counted: Callable[[Result], Result] = lambda result: result
    not_readable: Mapping[Submission, tuple[str, ...]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    todo: dict[Submission, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.noted: dict[str, dict[str, str]] = {}
        for row in rows_of(self.folder / JOURNAL):
            match row:
                case [str(name), dict(result_keys)]:  # other rows are ignored
                    self.noted.setdefault(name, {}).update(result_keys)

    @property
    def partly_graded_count(self) -> int:
        """How many submissions of `todo` are graded in part: some exercises have not changed."""
        return sum(
            len(todo) < len(self._chosen_exercises(submission))
            for submission, todo in self.todo.items()
        )

    def unchanged_results(
        self, submissions: Sequence[Submission], *, again: bool
    ) -> Iterator[tuple[Submission, Result]]:
        """Yield the submissions of which no chosen exercise has to be graded, with their results.

        Such a result is entered in the gradebook again. Its file is written only if the time of
        handing in or the unreadable files have changed. All other submissions are added to `todo`,
        so exhaust this iterator before calling `add`. Raises CourseFault if results of exercises
        that are not chosen would be lost, because the file on disk is invalid.

        Args:
            submissions: The submissions.
            again: Whether all exercises are graded again, even if nothing has changed.
        """
        for submission in submissions:
            old_result, chosen = self._on_disk(submission), self._chosen_exercises(submission)
            in_part = len(chosen) < len(submission.assignment.exercises)
            if in_part and old_result is None and self._path(submission).exists():
                problem = f"{self._path(submission)} is not a result, or one of another version"
                lost = "what it holds of other exercises cannot stay"
                raise CourseFault(
                    f"{problem}: {lost}. Next: course grade without --exercise or --only"
                )
            old_exercises: dict[str, ExerciseResult] = {}
            if old_result is not None and not again:
                old_exercises = {e.id: e for e in old_result.exercises}
            keys_to_grade = {}
            for exercise in chosen:
                # Keys are computed before grading, because files may change meanwhile.
                key = self.keys.of_attempt(submission, exercise)
                if not self.has_noted(submission, exercise, key, old_exercises.get(exercise.id)):
                    keys_to_grade[exercise.id] = key
            if keys_to_grade or old_result is None:
                self.todo[submission] = keys_to_grade
            else:
                yield submission, self._write(submission, old_result, old_result)

    def add(self, graded: Graded) -> Result:
        """Write a result to its file, then to the gradebook, and then note it in the journal.

        Returns the result as written: it has also the exercises that keep an earlier result. The
        journal comes last, so that an interrupted run grades the submission again.
        `unchanged_results` must have gone through all submissions.
        """
        submission = graded.submission
        result = self._write(submission, graded.result, self._on_disk(submission))
        self.note(submission, self.todo[submission], result)
        self.faults += graded.faults
        return result

    def has_noted(
        self, submission: Submission, exercise: Exercise, key: str, result: ExerciseResult | None
    ) -> bool:
        """Return whether the journal has this result for the attempt with this key.

        False without a result.
        """
        result_keys = self.noted.get(f"{submission.student}/{submission.assignment.id}", {})
        result_key = result_keys.get(exercise.id)
        if result_key is None or result is None:
            return False
        return result_key == self.keys.of_result(key, exercise, result)

    def note(
        self, submission: Submission, exercise_keys: Mapping[str, str], result: Result
    ) -> None:
        """Note in the journal that these exercises of the result are on disk.

        Exercises that could not be graded are not noted, so that the next run tries them again.

        Args:
            submission: The submission.
            exercise_keys: The keys of the exercises, computed before grading, because files may
                change.
            result: The result.
        """
        graded = {exercise.id: exercise for exercise in result.exercises if exercise.is_graded}
        result_keys = {
            e.id: self.keys.of_result(exercise_keys[e.id], e, graded[e.id])
            for e in submission.assignment.exercises
            if e.id in exercise_keys and e.id in graded
        }
        name = f"{submission.student}/{submission.assignment.id}"
        append(self.folder / JOURNAL, [name, result_keys])

    def _write(self, submission: Submission, result: Result, old_result: Result | None) -> Result:
        """Write a result to its file and the gradebook, and return it as written.

        The time of handing in and the unreadable files are added. The file is written, and changed
        points are noted, only if the result differs from the one on disk.

        Args:
            submission: The submission.
            result: The new result.
            old_result: The result on disk, if there is one. Its other exercises are kept.
        """
        result = merge_results(result, old_result, submission.assignment)
        result = result.model_copy(update={"handed_in": self.handed_in.get(submission)})
        result = with_not_readable(result, self.not_readable.get(submission, ()))
        if result != old_result:
            if old_result is not None:
                note_points(self.folder, self.counted(old_result), self.counted(result))
            write_result(result, self.folder)
        # This is done even if nothing changed: a run may have stopped after writing the file.
        if self.enter is not None:
            self.enter(self.counted(result))
        return result

    def _chosen_exercises(self, submission: Submission) -> list[Exercise]:
        """Return the exercises of the submission that were chosen; all if none were."""
        return [
            e for e in submission.assignment.exercises if not self.chosen or e.id in self.chosen
        ]

    def _on_disk(self, submission: Submission) -> Result | None:
        """Return the result in the folder, or None if the file is missing or invalid."""
        with suppress(OSError, ValidationError):
            return Result.model_validate_json(self._path(submission).read_bytes())
        return None

    def _path(self, submission: Submission) -> Path:
        return result_path(self.folder, submission.student, submission.assignment.id)


class ChangedPoints(NamedTuple):
    """The points of a result, and those of the result that it replaced. None means not graded."""

    student: str
    assignment: str
    before: float | None
    after: float | None


def note_points(folder: Path, old_result: Result, new_result: Result) -> None:
    """Note a student whose points for the exercises in both results have changed.

    Nothing is noted if a decision sets the student's points.
    """
    ids_before = {exercise.id for exercise in old_result.exercises}
    ids_in_both = ids_before.intersection(exercise.id for exercise in new_result.exercises)
    old_points, new_points = _score_in(old_result, ids_in_both), _score_in(new_result, ids_in_both)
    is_by_hand = any(adjustment.rule == "score" for adjustment in new_result.adjustments)
    if old_points != new_points and not is_by_hand:
        append(
            folder / CHANGING, [new_result.student, new_result.assignment, old_points, new_points]
        )


def _score_in(result: Result, ids: set[str]) -> float | None:
    """Return the total of a result for these exercises only. None means not graded."""
    return with_total(result, (e for e in result.exercises if e.id in ids)).score


def finish_changed_points(folder: Path) -> list[ChangedPoints]:
    """Replace the changes that the last run noted by those of this run, and return the new ones."""
    if (folder / CHANGING).exists():
        (folder / CHANGING).replace(folder / CHANGED)
    else:
        (folder / CHANGED).unlink(missing_ok=True)
    return read_changed_points(folder)


def read_changed_points(folder: Path) -> list[ChangedPoints]:
    """Return the points that the last run changed, ordered by student.

    Points that two changes have led back to their first value do not count as changed. Rows of the
    file without the required structure are skipped.
    """
    points: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    for row in rows_of(folder / CHANGED):
        match row:
            case [
                str(student),
                str(assignment),
                float() | int() | None as old_points,
                float() | int() | None as new_points,
            ]:
                # A stopped run and the one that goes on may both note a student. Then the points
                # before the first change count.
                old_points, _ = points.get((student, assignment), (old_points, new_points))
                points[student, assignment] = old_points, new_points
    return [
        ChangedPoints(student, assignment, old_points, new_points)
        for (student, assignment), (old_points, new_points) in sorted(points.items())
        if old_points != new_points
    ]
