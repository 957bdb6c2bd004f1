"""Run an attempt through `course check` and through `course grade`, and compare the results.

"Home" is the result of `course check`, as on the student's machine; "graded" is the result of
`course grade`.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import chain

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_source
from manyheads.submission import Source
from tests.make import REPOSITORY, edit_text

NO_LINES = Bounds(edits=0)  # no search for the wrong line: it takes longer than all the rest
# the text of an attempt, or a mapping from texts of the solution to their replacements
Attempt = Mapping[str, str] | str | Source


class Sides:
    """Runs attempts at exercises of the real and of the tiny course, as check and as grade do."""

    def __init__(self, box: Box, tiny: Course) -> None:
        self._box, self._courses = box, (load_course(REPOSITORY), tiny)

    @cached_property
    def _judges(self) -> dict[str, Judge]:
        settings = Settings(b"secret", lines=False)
        return {
            e.id: judge
            for c in self._courses
            for judge in [Judge(c, self._box, settings)]
            for e in c.exercises
        }

    def exercise(self, id_: str) -> Exercise:
        """Return the exercise with this id, from the real course or the tiny one."""
        exercises = chain.from_iterable(course.exercises for course in self._courses)
        return next(exercise for exercise in exercises if exercise.id == id_)

    def source(self, id_: str, attempt: Attempt) -> Source:
        """Return the attempt at this exercise as a submitted file."""
        if isinstance(attempt, Mapping):
            attempt = edit_text(
                self.exercise(id_).solution.read_text(encoding="utf-8"), *attempt.items()
            )
        return (
            Source(f"{self.exercise(id_).stem}.py", attempt)
            if isinstance(attempt, str)
            else attempt
        )

    def home(self, id_: str, attempt: Attempt, bounds: Bounds = NO_LINES) -> ExerciseResult:
        """Return the result of `course check` for this attempt."""
        exercise, limits = self.exercise(id_), self._courses[0].limits.for_worker()
        return check_source(
            read(exercise.fingerprints),
            self.source(id_, attempt),
            self._box,
            limits,
            bounds,
            exercise,
        )

    def grade_attempt(self, id_: str, attempt: Attempt) -> ExerciseResult:
        """Return the result of `course grade` for this attempt."""
        return self._judges[id_].grade_attempt("ada", self.exercise(id_), self.source(id_, attempt))

    def faults(self, id_: str) -> list[str]:
        """Return the errors of the grader itself."""
        return self._judges[id_].faults

    def both_results(self, id_: str, attempt: Attempt) -> tuple[ExerciseResult, ExerciseResult]:
        """Return the results of `course grade` and of `course check`, in this order."""
        return self.grade_attempt(id_, attempt), self.home(id_, attempt)


@pytest.fixture(scope="session")
def sides(box: Box, tiny: Course) -> Sides:
    """Return the runner of both commands, without a search for the wrong line."""
    return Sides(box, tiny)


def named_misconceptions(result: ExerciseResult) -> list[str]:
    """Return the diagnosed misconceptions in order, each with its alternatives: "first|other"."""
    return [
        "|".join((misconception.id, *misconception.alternatives))
        for misconception in result.diagnosis
    ]


def side_differences(graded: ExerciseResult, home: ExerciseResult) -> list[str]:
    """Return the differences between the two results that a hidden check cannot explain.

    A hidden check may add names after those of the home result, and may fail a function that
    passes all visible checks.
    """
    differences = []
    graded_names, home_names = named_misconceptions(graded), named_misconceptions(home)
    if graded_names[: len(home_names)] != home_names:
        differences.append(f"graded {graded_names}, at home {home_names}")
    by_name = {function.name: function for function in graded.functions}
    for home_function in home.functions:
        graded_function = by_name[home_function.name]
        evidence, separator, _ = home_function.evidence.partition(" Python says: ")
        # only the student sees the message of an exception
        if separator and graded_function.evidence.startswith(evidence.rstrip(".")):
            home_function = home_function.model_copy(update={"evidence": graded_function.evidence})
        is_wrong_at_home = home_function.state not in ("right", "unseen", "so_far")
        is_unfinished = graded_function.state in ("unwritten", "undefined")
        if (is_wrong_at_home or is_unfinished) and home_function != graded_function:
            differences.append(f"graded {graded_function}, at home {home_function}")
    return differences
