"""Keep a course's hidden checks, references and diagnosis tables, and run the checks on trusted code."""

from __future__ import annotations

from functools import cache

from ..checks.draw import Drawn
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import LocalRecordingRunner, namespace_of
from ..checks.outcome import CheckOutcome
from ..course import Course, Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.recording_file import checks_failed_by, current
from ..diagnosis.table import Table, table_of, table_without_recording
from .hidden_checks import CheckRun
from .memory import Memory, RememberingRunner
from .run_checks import HiddenChecks

# The diagnosis table of each exercise, read from its recording when it is needed.


class Tables:
    """The tables of a course's exercises, and for each misconception the checks that its mutants fail: each read once."""

    def __init__(self) -> None:
        self.of = cache(_table)
        self.checks_failed_by = cache(checks_failed_by)


def _table(exercise: Exercise) -> Table:
    """Return the exercise's table. Where its recording is missing or stale, every mutant is replayed instead."""
    recording = current(exercise)
    return table_of(recording) if recording else table_without_recording(load_bank(exercise))


# Run a course's hidden checks on trusted code: the reference and the mutants, in the judge's own process.


class Catalogue:
    """The checks and the reference of every exercise."""

    def __init__(self, course: Course) -> None:
        """Collect every check. Raises GraderFault."""
        self._course = course
        self._checks = HiddenChecks([e.checks for e in course.exercises])
        self.tables = Tables()

    def checks(self, exercise: Exercise) -> list[CheckOutcome]:
        """Return the checks of an exercise, as outcomes without an attempt."""
        return self._checks.unattempted(exercise.checks)

    def reference(self, exercise: Exercise) -> LocalRunner:
        """Return the reference solution. Raises BrokenReference."""
        return LocalRunner(namespace_of(exercise.solution))

    def remembering(self, exercise: Exercise) -> RememberingRunner:
        """Return the reference for many runs with the same inputs: it answers each call once. Raises BrokenReference."""
        return RememberingRunner(namespace_of(exercise.solution), only_values=True)

    def run(
        self,
        exercise: Exercise,
        attempt: LocalRecordingRunner,
        reference: Runner,
        secret: bytes,
        *seed_parts: str,
        drawn: list[Drawn] | None = None,
    ) -> list[CheckOutcome]:
        """Return the outcomes of all checks of the exercise for this trusted code.

        drawn: a list to which everything that the checks draw is added.
        """
        memory = reference.memory if isinstance(reference, RememberingRunner) else Memory()
        memory.begin_attempt()
        return self._checks.run(
            exercise.checks, CheckRun(attempt, reference, secret, seed_parts, memory, exercise.forms, drawn)
        )
