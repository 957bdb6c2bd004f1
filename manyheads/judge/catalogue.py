"""Run a course's hidden checks on trusted code: the reference and the mutants, in the judge's own process."""

from __future__ import annotations

from ..checks.draw import Drawn
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import LocalRecordingRunner, namespace_of
from ..checks.outcome import CheckOutcome
from ..course import Course, Exercise
from .hidden_checks import CheckRun
from .memory import Memory, RememberingRunner
from .run_checks import HiddenChecks


class Catalogue:
    """The checks and the reference of every exercise."""

    def __init__(self, course: Course) -> None:
        """Collect every check. Raises GraderFault."""
        self._course = course
        self._checks = HiddenChecks([e.checks for e in course.exercises])

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
        """Return the outcomes of all checks of the exercise for this trusted code. drawn: a list that gets what they draw."""
        memory = reference.memory if isinstance(reference, RememberingRunner) else Memory()
        memory.begin_attempt()
        run = CheckRun(attempt, reference, secret, seed_parts, memory, exercise.forms, drawn)
        return self._checks.run(exercise.checks, run)
