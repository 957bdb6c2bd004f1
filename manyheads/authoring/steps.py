"""A release in steps that can be taken in any process: put some mutants the calls, make a table, put all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Literal

from ..checks.trusted import namespace_of
from ..course import Course, Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.kill_matrix import KillMatrix, read_kill_matrix
from ..diagnosis.pair_answers import Pairs
from ..judge.catalogue import Catalogue
from .answers import Answers, answers_of
from .files import Released, files_of
from .fingerprints import recorded_file
from .kept import kept_file, recorded_from
from .kill_matrix import kill_matrix_of, kill_rows
from .pairs import recorded_pairs
from .recorded import RecordedCalls
from .recorded_calls import recorded_calls
from .stub import stub_of

PART = 100  # mutants that are asked in one step: fewer would find the same wrong answers once more in every step


@dataclass(frozen=True)
class Step:
    """A step for an exercise.

    anew: of the table, make it also where its key says that it is current.
    recorded_from: of the files, what the record of the mutants was made from; empty: it is not to be believed.
    """

    kind: Literal["calls", "kills", "table", "files", "matrix"]
    exercise: str
    mutants: range = range(0)
    anew: bool = False
    recorded_from: str = ""


@dataclass(frozen=True)
class Kills:
    """Which checks some mutants fail: a row of the kill matrix for each."""

    rows: tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """What a step made, by path; nothing where the file that lies there is as it must be.

    files: those for students. recorded_from: what the record of the mutants is made from.
    """

    files: tuple[tuple[Path, bytes | None], ...] = ()
    hidden: tuple[tuple[Path, bytes], ...] = ()
    recorded_from: str = ""


Asked = Answers | Kills


def recording_steps(exercise: Exercise, *, kills: bool, anew: bool) -> list[Step]:
    """The steps that make an exercise's files; the last needs what the others find.

    kills: also which checks the mutants fail. anew: do not believe the table's key.
    """
    table = Step("table", exercise.id, anew=anew)
    last = Step("files", exercise.id)
    return [*_parts("calls", exercise), *(_parts("kills", exercise) if kills else []), table, last]


def keeping_steps(exercise: Exercise, recorded_from: str) -> list[Step]:
    """The steps that make an exercise's files from what is recorded of its mutants, if that is still made from the same."""
    return [Step("table", exercise.id), Step("files", exercise.id, recorded_from=recorded_from)]


def matrix_steps(exercise: Exercise) -> list[Step]:
    """The steps that make an exercise's kill matrix alone."""
    return [*_parts("kills", exercise), Step("matrix", exercise.id)]


class Workshop:
    """Takes steps, one after the other. What the steps for an exercise share is made once."""

    def __init__(self, course: Course, catalogue: Catalogue) -> None:
        self._exercises = {exercise.id: exercise for exercise in course.exercises}
        self._catalogue = catalogue
        self._recorded: dict[str, RecordedCalls] = {}

    def take(self, step: Step, asked: Sequence[Asked]) -> Asked | Made:
        """Take a step; `asked`: for the last one, what the others found. Raises what a broken course raises (CourseError,
        BrokenReference, …).
        """
        exercise = self._exercises[step.exercise]
        namespaces = [load_bank(exercise).mutants[place].namespace for place in step.mutants]
        if step.kind == "calls":
            return answers_of(self._calls(exercise), namespaces)
        if step.kind == "kills":
            return Kills(tuple(kill_rows(self._catalogue, exercise, namespaces)))
        if step.kind == "table":
            table = self._catalogue.tables.renewed(exercise, anew=step.anew)
            return Made() if table is None else Made(hidden=((exercise.table, table),))
        new = self._matrix(exercise, asked)
        hidden = () if new is None else ((exercise.kill_matrix, new.file_content()),)
        if step.kind == "matrix":
            return Made(hidden=hidden)
        stub, calls = stub_of(exercise), self._calls(exercise)
        made_from = recorded_from(exercise, calls, new.file_content() if new else exercise.kill_matrix.read_bytes())
        fingerprints = (
            kept_file(exercise, stub, calls, self._pairs(exercise)) if step.recorded_from == made_from else None
        )
        if fingerprints is None:
            fingerprints = self.fingerprints(exercise, self.ask_all(exercise) if step.recorded_from else asked)
        files = files_of(self._catalogue, exercise, stub, fingerprints)
        made = tuple((each.path, None if each.is_in_step() else each.content) for each in files)
        return Made(made, hidden, made_from)

    def files(self, exercise: Exercise, asked: Sequence[Asked]) -> list[Released]:
        """The files for students, from what the steps before found."""
        return list(files_of(self._catalogue, exercise, stub_of(exercise), self.fingerprints(exercise, asked)))

    def fingerprints(self, exercise: Exercise, asked: Sequence[Asked]) -> bytes:
        """The fingerprint file, from what the steps before found."""
        kills = self._matrix(exercise, asked) or read_kill_matrix(exercise)
        assert kills is not None
        answers = [each for each in asked if isinstance(each, Answers)]
        calls, pairs, unlisted = self._calls(exercise), self._pairs(exercise), self._unlisted(exercise, kills.checks)
        return recorded_file(exercise, stub_of(exercise), calls, answers, kills, unlisted, pairs)

    def _unlisted(self, exercise: Exercise, checks: Sequence[str]) -> dict[Path, frozenset[str]]:
        """The checks that each wrong attempt fails that no mutant stands for."""
        paths = exercise.wrong_attempts()
        rows = kill_rows(self._catalogue, exercise, [namespace_of(path) for path in paths])
        return {path: frozenset(compress(checks, map(int, row))) for path, row in zip(paths, rows, strict=True)}

    def ask_all(self, exercise: Exercise) -> list[Asked]:
        """What all steps find that the files need."""
        steps = recording_steps(exercise, kills=read_kill_matrix(exercise) is None, anew=False)
        found = [self.take(step, ()) for step in steps if step.kind in ("calls", "kills")]
        return [each for each in found if not isinstance(each, Made)]

    def _matrix(self, exercise: Exercise, asked: Sequence[Asked]) -> KillMatrix | None:
        found = [each for each in asked if isinstance(each, Kills)]
        return (
            kill_matrix_of(self._catalogue, exercise, [row for each in found for row in each.rows]) if found else None
        )

    def _pairs(self, exercise: Exercise) -> Pairs:
        return recorded_pairs(self._catalogue.tables.of(exercise), load_bank(exercise), self._calls(exercise).calls)

    def _calls(self, exercise: Exercise) -> RecordedCalls:
        if exercise.id not in self._recorded:
            self._recorded[exercise.id] = recorded_calls(self._catalogue, exercise)
        return self._recorded[exercise.id]


def _parts(kind: Literal["calls", "kills"], exercise: Exercise) -> list[Step]:
    """The steps that ask all mutants; at least one, for it proves the reference right, too."""
    mutants = range(len(load_bank(exercise).mutants))
    return [Step(kind, exercise.id, mutants[start : start + PART]) for start in mutants[::PART] or (0,)]
