"""Find a student's own attempt at an exercise, check it, and keep the result.

The result of a check is kept in the folder `.course`, which git ignores, in one file for each
exercise. It is valid as long as nothing changes that a result depends on: the attempt's text, the
fault dictionary, course.yaml, the engine and the version of torch. A valid result saves the import
of torch, which alone takes a second. A file that cannot be read or written counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from os.path import basename
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel

from ..course import Course, CourseError, Exercise
from ..course.model import FOLDER, exercises_called
from ..files import restore, write_whole
from ..result import ExerciseResult
from ..submission import (
    ENDINGS,
    Source,
    Unreadable,
    read_attempt,
    read_bytes,
    read_file,
    size_limit,
)
from ..submission.find_submitted_files import Exercises, NotPlaced

if TYPE_CHECKING:
    from ..box.connection import Box
    from ..diagnosis.fault_dictionary import FaultDictionary

# NAME is the folder of the results, within FOLDER; ENGINE is the folder of this package's code
NAME, ENGINE = "last-check", Path(__file__).parents[1]
# the time limits, as a multiple of those of grading: a laptop may be slow, and no points depend on
# them
PATIENCE = 2


class _Kept(BaseModel):
    key: str  # a hash of all that the result depends on
    result: ExerciseResult


@dataclass(frozen=True)
class OwnAttempt:
    """A student's own attempt at an exercise.

    Attributes:
        course: The course.
        exercise: The exercise.
        source: The text of the attempt. It is marked as missing if there is no file to judge.
        is_started: Whether there is a file to judge and its code differs from the untouched stub.
    """

    course: Course
    exercise: Exercise
    source: Source
    is_started: bool

    @property
    def is_begun(self) -> bool:
        """Whether the student has written something, even in a file with another name."""
        return self.is_started or (
            self.source.missing and self.source.name != self.exercise.script.name
        )

    @property
    def path(self) -> Path:
        """The path of the attempt's file, relative to the working folder if the file is below."""
        return from_here(self.exercise.script.with_name(self.source.name))

    @property
    def last_result(self) -> ExerciseResult | None:
        """The kept result, or None if there is none or if something that it depends on changed."""
        stored = _stored_check(self.exercise)
        return stored.result if stored is not None and stored.key == self._key else None

    def keep(self, result: ExerciseResult) -> None:
        """Write the result of a check of this attempt to the exercise's file in `.course`.

        The exercise then counts as checked last. If the file cannot be written, nothing is kept
        and nothing is raised.
        """
        with suppress(OSError):
            (self.course.root / FOLDER).mkdir(mode=0o700, exist_ok=True)
            stored = _Kept(key=self._key, result=result)
            write_whole(kept_path(self.exercise), stored.model_dump_json().encode())

    @property
    def _key(self) -> str:
        files = (self.exercise.fingerprints, self.course.root / "course.yaml")
        dependencies = [repr(self.source), *versions(), *map(state_of, files)]
        return hashlib.sha256("\0".join(dependencies).encode("utf-8", "surrogatepass")).hexdigest()

    def judged_instead(self, names: Collection[str]) -> str:
        """Return a sentence that says why another file is judged than the one that was named.

        Return "" if every named file is judged or has nothing to do with this exercise, or if no
        file is judged.

        Args:
            names: The names of exercises and files on the command line.
        """
        other_names = {basename(name) for name in names} - {self.source.name}
        if self.source.missing:  # the command reports the missing file instead of a result
            return ""
        for named_path in (
            path
            for path in (self.exercise.script, self.exercise.notebook)
            if path.name in other_names
        ):
            if not self.source.note:  # the result shows the note
                why = "is as it was handed out" if named_path.exists() else "is not here"
                return f"{self.source.name} is judged, for {named_path.name} {why}."
        own_names = {self.exercise.script.name, self.exercise.notebook.name}
        copies = sorted(other_names - own_names)
        return next(filter(None, map(self._note_on_copied_file, copies)), "")

    def _note_on_copied_file(self, name: str) -> str:
        """Return a sentence that says why a file with a similar name is not judged.

        Return "" if the name does not name a file of this exercise.
        """
        is_there = self.exercise.script.with_name(name).exists()
        is_of_this = (
            name.lower().endswith(ENDINGS)
            and Exercises(self.course).match_name(name) is self.exercise
        )
        if not is_of_this or (exercises_called(self.course.exercises, name) and not is_there):
            return ""  # 4_reshape_dance.py is a short way to name 04_reshape_dance.py
        why = "is not called as an attempt is" if is_there else "is not here"
        return f"{self.source.name} is judged, for {name} {why}."

    @property
    def fault_dictionary(self) -> FaultDictionary:
        """The fault dictionary of the exercise. Reading it imports torch.

        Raises:
            CourseError: It cannot be read.
        """
        from ..diagnosis.recording_file import read

        return read(self.exercise.fingerprints)

    def must_run(self, command: str) -> None:
        """Raise CourseError if the attempt has no code that this command could run.

        There is no such code if the file is missing or cannot be read, or if the stub is untouched.
        The message says what to do next.
        """
        problem, exercise = self.source.problem, self.exercise
        if self.source.missing:
            raise CourseError(problem)
        if problem or not self.is_started:
            manual_step = "mend the file" if problem else f"fill the first stub of {exercise.stem}"
            reason = problem or f"{exercise.id} is not started yet: there is nothing to {command}."
            raise CourseError(
                f"{reason}\nNext: {manual_step}, then: course {command} {exercise.id}"
            )


def read_own_attempt(course: Course, exercise: Exercise) -> OwnAttempt:
    """Return the student's attempt at an exercise, from the folder exercises/.

    The attempt is the script, or the notebook if the script is untouched or does not exist. If
    neither has been changed, but a file with another name probably has the student's work, the
    attempt has the name of that file and is marked as missing. It is also marked as missing if
    neither exists. The problem of a missing attempt has two lines: the reason and the next step.
    Otherwise the attempt is an untouched file, the script if it exists.

    Raises:
        CourseError: The file of the fault dictionary cannot be read.
    """
    script, kib = exercise.script, course.limits.source_kib
    stub = recorded_stub(exercise).code_digest
    source = read_attempt(script.parent, exercise.stem, stub, kib)
    if not source.missing and source.code_digest != stub:
        return OwnAttempt(course, exercise, source, is_started=True)
    if misnamed := _other_name(course, exercise):
        expected_path = script.with_suffix(Path(misnamed).suffix)
        is_here = "is as it was handed out" if script.exists() else "is not here"
        action = (
            f"put it in the place of {expected_path.name}"
            if expected_path.exists()
            else f"rename it to {expected_path.name}"
        )
        problem = (
            f"{script.name} {is_here}, and {misnamed} is not read.\n"
            f"Next: {action}, then: course check {exercise.id}"
        )
        source = Source(misnamed, missing=True, problem=problem)
    elif source.missing:
        problem = f"{script.name} is not here.\nNext: git checkout {quote(str(from_here(script)))}"
        source = replace(source, problem=problem)
    elif script.exists():
        source = read_file(script, kib)
    return OwnAttempt(course, exercise, source, is_started=False)


def _other_name(course: Course, exercise: Exercise) -> str:
    """Return the name of a file that probably has the attempt under a wrong name, or "".

    The file is beside the exercise's script, and no exercise reads it. Its name has the id of the
    exercise in it; if no file has, the name that is most like the script's counts. If the script
    exists, the file must not be an unwritten stub. If the script does not exist and no name is
    similar, a file whose content belongs to the exercise counts.
    """
    script, kib, exercises = exercise.script, course.limits.source_kib, Exercises(course)
    exercise_paths = {
        path
        for course_exercise in course.exercises
        for path in (course_exercise.script, course_exercise.notebook)
    }
    names = sorted(
        p.name
        for p in script.parent.glob("*")
        if p.suffix in (".py", ".ipynb") and p not in exercise_paths
    )
    near = [name for name in names if exercise.id in name] or get_close_matches(
        script.name, names, n=1, cutoff=0.85
    )
    if script.exists():
        near = [name for name in near if not read_file(script.with_name(name), kib).is_unwritten]
    for name in () if near or script.exists() else names:
        with suppress(NotPlaced, Unreadable):
            content = read_bytes(script.with_name(name), size_limit(name, kib))
            if exercises.exercise_of(name, content) == exercise:
                return name
    return near[0] if near else ""


class RecordedStub(NamedTuple):
    """The data of the fault dictionary that can be read without torch.

    Attributes:
        code_digest: The code_digest of the untouched stub.
        check_titles: Id and title of each check, sorted by layer.
    """

    code_digest: str
    check_titles: list[tuple[str, str]]


def recorded_stub(exercise: Exercise) -> RecordedStub:
    """Return the recorded data of an exercise's stub.

    Raises:
        CourseError: The file of the fault dictionary cannot be read.
    """
    path = exercise.fingerprints
    try:
        with path.open("rb") as file:  # its head is enough, and can be read without torch
            head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = json.loads(head["__metadata__"]["body"])
        checks = sorted(body["checks"], key=lambda check: check["layer"])
        return RecordedStub(body["stub"], [(check["id"], check["title"]) for check in checks])
    except (OSError, ValueError, LookupError, TypeError, MemoryError, OverflowError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise CourseError(f"{path} cannot be read ({why}). {restore(path)}") from error


def checked_last(course: Course) -> Exercise | None:
    """Return the exercise that was checked last, or None if no result is kept.

    Exercises that are done count only if all checked exercises are done. A kept result counts even
    if the attempt has changed since the check.
    """
    checked = {
        exercise: stored.result
        for exercise in course.exercises
        if (stored := _stored_check(exercise))
    }
    open_ones = [exercise for exercise, result in checked.items() if not result.is_done]
    return max(open_ones or checked, key=checked_at, default=None)


def checked_at(exercise: Exercise) -> int:
    """Return the time of the last check of an exercise, in nanoseconds since the epoch.

    Raises OSError if no result is kept.
    """
    return kept_path(exercise).stat().st_mtime_ns


def done_exercises(course: Course) -> set[Exercise]:
    """Return the exercises whose kept result says that every check passes.

    Nothing is run. If something that a result depends on has changed, its exercise is left out.
    """
    completed = set()
    for exercise in course.exercises:
        # A file of the course is missing. Checking that exercise reports it.
        with suppress(CourseError):
            result = read_own_attempt(course, exercise).last_result
            if result is not None and result.is_done:
                completed.add(exercise)
    return completed


def _stored_check(exercise: Exercise) -> _Kept | None:
    with suppress(OSError, ValueError):
        return _Kept.model_validate_json(kept_path(exercise).read_bytes())
    return None


def kept_path(exercise: Exercise) -> Path:
    """Return the path of the file that keeps the result of an exercise's last check."""
    return exercise.root / FOLDER / NAME / f"{exercise.assignment.id}.{exercise.stem}.json"


@cache
def versions() -> tuple[str, ...]:
    """Return the versions of the packages that a result depends on, and the state of each module.

    The packages are manyheads, torch, numpy and einops. The files of manyheads count as well,
    because a checkout changes without a new version. Everything is read once in each process.
    """
    packages = ("manyheads", "torch", "numpy", "einops")
    package_versions = [
        f"{name} {distribution.version}"
        for name in packages
        for distribution in metadata.distributions(name=name)
    ]
    return (*dict.fromkeys(package_versions), *map(state_of, sorted(ENGINE.rglob("*.py"))))


def state_of(path: Path) -> str:
    """Return the name, time of last change (ns) and size (bytes) of a file, or "" without a file.

    The folder of the file does not count.
    """
    with suppress(OSError):
        status = path.stat()
        return f"{path.name} {status.st_mtime_ns} {status.st_size}"
    return ""


def from_here(path: Path) -> Path:
    """Return the path, relative to the working folder if the path is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _says_more(earlier: ExerciseResult, result: ExerciseResult) -> bool:
    """Return whether an earlier check of the same text proved a line, and this one did not.

    All outcomes must be the same. The search for the line ends after some seconds, so it may fail
    on a busy machine. A line that was proved once stays proved.
    """
    outcomes = [(check.id, check.outcome) for check in earlier.checks]
    is_same = outcomes == [(check.id, check.outcome) for check in result.checks]
    return is_same and bool(earlier.lines) and not result.lines


class Checks(ExitStack):
    """The checks of a student's own attempts.

    Use an instance as a context manager. If no box is given, one is opened for the first attempt
    that must run, and closed at the end of the context.

    Attributes:
        course: The course.
        ran: The exercises that were run.
        waiting: A function that returns a context manager for an exercise. The attempt runs in this
            context, for example while a message is shown. The default does nothing.
    """

    def __init__(
        self, course: Course, box: Box | None = None, *, fresh: bool = False, looks: bool = False
    ) -> None:
        """Prepare the checks.

        Args:
            course: The course.
            box: An open box, or None to open one when it is needed. It is not closed here.
            fresh: Whether to run also attempts that have not changed.
            looks: Whether the caller only looks at kept results. If true, a kept result is returned
                unchanged, and the exercise does not become the one checked last. If false, an
                attempt that timed out or crashed is run again, because a busy machine may be the
                reason.
        """
        super().__init__()
        self.course, self.ran = course, set[Exercise]()
        self.waiting: Callable[[Exercise], AbstractContextManager[object]] = nullcontext
        self._box, self._fresh, self._looks = box, fresh, looks

    def box(self) -> Box:
        """Return the box, opened if necessary.

        Opening it may fork this process, so call this before any computation and before any thread.
        """
        if self._box is None:
            from ..box.without_namespaces import open_own_box

            self._box = self.enter_context(open_own_box(meta=True))
        return self._box

    def result(self, attempt: OwnAttempt) -> ExerciseResult:
        """Return the result of the visible checks, or the kept result if nothing has changed since.

        The constructor's `fresh` and `looks` say when a kept result counts. Unless it is only
        looked at, the returned result is written to the exercise's file in `.course`. If a new run
        has the outcomes of the kept result but proves no line, the kept result with its lines is
        returned.

        Raises:
            CourseError: The attempt is missing, or the fault dictionary cannot be read.
        """
        if attempt.source.missing:
            raise CourseError(attempt.source.problem)
        stored = attempt.last_result
        result = None if self._fresh else stored
        if result is not None and self._looks:
            return result
        if result is None or any(
            check.outcome in ("timeout", "crashed") for check in result.checks
        ):
            self.ran.add(attempt.exercise)
            result = self._run(attempt)
            if stored is not None and _says_more(stored, result):
                result = stored
        attempt.keep(result)
        return result

    def _run(self, attempt: OwnAttempt) -> ExerciseResult:
        """Return the result of a run in the box, with PATIENCE times the course's time limits."""
        box = self.box()
        from .check_attempt import check_source

        recording, limits = attempt.fault_dictionary, self.course.limits.for_worker()
        longer = {
            key: PATIENCE * getattr(limits, key)
            for key in ("seconds_per_call", "seconds_per_attempt")
        }
        with self.waiting(attempt.exercise):  # an endless loop takes until its limit
            return check_source(
                recording, attempt.source, box, replace(limits, **longer), exercise=attempt.exercise
            )
