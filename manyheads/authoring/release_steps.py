"""Make a release in steps that can be taken in any process: put calls to some mutants, run the checks on them, put all together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Literal

from ..checks.local import LocalRecordingRunner, namespace_of
from ..checks.outcome import CheckOutcome
from ..course import Course, Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.recording_file import KillMatrix, read_kill_matrix
from ..judge.catalogue import Catalogue
from .files import Released, files_of
from .fingerprints import recorded_file
from .mutant_answers import Answers, answers_of
from .public_calls import RecordedCalls
from .record_calls import recorded_calls
from .reuse import kept_file, recorded_from
from .stub import stub_of

# Make the kill matrix: run the checks on every mutant.

INPUTS = (
    b"verify"  # in place of the course secret; `course verify` uses it too, and compares the record with its own run
)


def kill_rows(catalogue: Catalogue, exercise: Exercise, mutants: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Run the checks on these mutants: a row for each."""
    reference = catalogue.remembering(exercise)
    for namespace in mutants:
        yield bits(catalogue.run(exercise, LocalRecordingRunner(namespace), reference, INPUTS, exercise.id))


def bits(outcomes: Sequence[CheckOutcome]) -> str:
    """Return a 1 for each check that failed, else a 0."""
    return "".join("01"[outcome.outcome != "passed"] for outcome in outcomes)


# A release in steps that can be taken in any process: put some mutants the calls, make a table, put all together.

PART = 100  # mutants that are asked in one step: fewer would find the same wrong answers once more in every step


@dataclass(frozen=True)
class Step:
    """A step for an exercise.

    recorded_from: of the files, what the record of the mutants was made from, which is kept if that is still the same; empty: it
    is not to be believed.
    """

    kind: Literal["calls", "kills", "files"]
    exercise: str
    mutants: range = range(0)
    recorded_from: str = ""


@dataclass(frozen=True)
class Kills:
    """Which checks some mutants fail: a row of the kill matrix for each."""

    rows: tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """The files for students, by path; nothing where what lies there is as it must be.

    recorded_from: what the record of the mutants is made from.
    """

    files: tuple[tuple[Path, bytes | None], ...] = ()
    recorded_from: str = ""


Asked = Answers | Kills


def recording_steps(exercise: Exercise, *, kills: bool) -> list[Step]:
    """Return the steps that make an exercise's files; the last needs what the others find.

    kills: also which checks the mutants fail.
    """
    return [*_parts("calls", exercise), *(_parts("kills", exercise) if kills else []), Step("files", exercise.id)]


class Workshop:
    """Takes steps, one after the other. What the steps for an exercise share is made once."""

    def __init__(self, course: Course, catalogue: Catalogue) -> None:
        self._exercises = {exercise.id: exercise for exercise in course.exercises}
        self._catalogue = catalogue
        self._recorded: dict[str, RecordedCalls] = {}

    def take(self, step: Step, answers: Sequence[Asked]) -> Asked | Made:
        """Take a step; `asked`: for the last one, what the others found.

        Raises what a broken course raises (CourseError, BrokenReference, …).
        """
        exercise = self._exercises[step.exercise]
        namespaces = [load_bank(exercise).mutants[place].namespace for place in step.mutants]
        if step.kind == "calls":
            return answers_of(self._calls(exercise), namespaces)
        if step.kind == "kills":
            return Kills(tuple(kill_rows(self._catalogue, exercise, namespaces)))
        stub, calls, kills = stub_of(exercise), self._calls(exercise), self._matrix(exercise, answers)
        made_from = recorded_from(exercise, calls, kills)
        fingerprints = kept_file(exercise, stub, calls) if step.recorded_from == made_from else None
        if fingerprints is None:
            fingerprints = self.fingerprints(exercise, self.ask_all(exercise) if step.recorded_from else answers)
        files = files_of(self._catalogue, exercise, stub, fingerprints)
        made = tuple((file.path, None if file.is_in_step() else file.content) for file in files)
        return Made(made, made_from)

    def files(self, exercise: Exercise, answers: Sequence[Asked]) -> list[Released]:
        """Return the files for students, from what the steps before found."""
        return list(files_of(self._catalogue, exercise, stub_of(exercise), self.fingerprints(exercise, answers)))

    def fingerprints(self, exercise: Exercise, asked: Sequence[Asked]) -> bytes:
        """Return the fingerprint file, from what the steps before found."""
        kills = self._matrix(exercise, asked)
        answers = [answer for answer in asked if isinstance(answer, Answers)]
        calls, unlisted = self._calls(exercise), self._unlisted(exercise, kills.checks)
        return recorded_file(exercise, stub_of(exercise), calls, answers, kills, unlisted)

    def _unlisted(self, exercise: Exercise, checks: Sequence[str]) -> dict[Path, frozenset[str]]:
        """Return the checks that each wrong attempt fails that no mutant stands for."""
        paths = exercise.wrong_attempts()
        rows = kill_rows(self._catalogue, exercise, [namespace_of(path) for path in paths])
        return {path: frozenset(compress(checks, map(int, row))) for path, row in zip(paths, rows, strict=True)}

    def ask_all(self, exercise: Exercise) -> list[Asked]:
        """Return what all steps find that the files need."""
        steps = recording_steps(exercise, kills=read_kill_matrix(exercise) is None)
        found = [self.take(step, ()) for step in steps if step.kind in ("calls", "kills")]
        return [answer for answer in found if not isinstance(answer, Made)]

    def _matrix(self, exercise: Exercise, answers: Sequence[Asked]) -> KillMatrix:
        """Return the kill matrix that the steps before found, else the one that is recorded."""
        rows = tuple(row for answer in answers if isinstance(answer, Kills) for row in answer.rows)
        known = None if rows else read_kill_matrix(exercise)
        return known or KillMatrix(tuple(check.id for check in self._catalogue.checks(exercise)), rows)

    def _calls(self, exercise: Exercise) -> RecordedCalls:
        if exercise.id not in self._recorded:
            self._recorded[exercise.id] = recorded_calls(self._catalogue, exercise)
        return self._recorded[exercise.id]


def _parts(kind: Literal["calls", "kills"], exercise: Exercise) -> list[Step]:
    """Return the steps that ask all mutants; at least one, for it proves the reference right, too."""
    mutants = range(len(load_bank(exercise).mutants))
    return [Step(kind, exercise.id, mutants[start : start + PART]) for start in mutants[::PART] or (0,)]
