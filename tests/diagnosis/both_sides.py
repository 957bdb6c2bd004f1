"""What a student's machine and the grading say of a text."""

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

NO_LINES = Bounds(edits=0)  # searching for them takes longer than all else
# a mapping: what stands in the solution, and what instead
Attempt = Mapping[str, str] | str | Source


class Sides:
    """Both sides of the courses' exercises, with one box."""

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
        """The exercise of this id, of the course or the tiny one."""
        exercises = chain.from_iterable(course.exercises for course in self._courses)
        return next(exercise for exercise in exercises if exercise.id == id_)

    def source(self, id_: str, attempt: Attempt) -> Source:
        """The attempt at this exercise as it is handed in."""
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
        """What `course check` says of it."""
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
        """What `course grade` says of it."""
        return self._judges[id_].grade_attempt("ada", self.exercise(id_), self.source(id_, attempt))

    def faults(self, id_: str) -> list[str]:
        """What went wrong with the grader itself."""
        return self._judges[id_].faults

    def both_results(self, id_: str, attempt: Attempt) -> tuple[ExerciseResult, ExerciseResult]:
        """What `course grade` says of it, and what `course check` says."""
        return self.grade_attempt(id_, attempt), self.home(id_, attempt)


@pytest.fixture(scope="session")
def sides(box: Box, tiny: Course) -> Sides:
    """Return both sides, without a search for the line that is wrong."""
    return Sides(box, tiny)


def named_misconceptions(result: ExerciseResult) -> list[str]:
    """What is named, in order, with what would do in its place."""
    return [
        "|".join((misconception.id, *misconception.alternatives))
        for misconception in result.diagnosis
    ]


def side_differences(graded: ExerciseResult, home: ExerciseResult) -> list[str]:
    """Where the two sides say different things of an attempt, but for what a hidden check shows by
    itself.

    That is a name that comes last, or stands beside the others; and a function that is right as far
    as what is public goes.
    """
    differences = []
    graded_names, home_names = named_misconceptions(graded), named_misconceptions(home)
    if graded_names[: len(home_names)] != home_names:
        differences.append(f"graded {graded_names}, at home {home_names}")
    by_name = {function.name: function for function in graded.functions}
    for home_function in home.functions:
        graded_function = by_name[home_function.name]
        evidence, says, _ = home_function.evidence.partition(" Python says: ")
        # the words of an exception are for its own student
        if says and graded_function.evidence.startswith(evidence.rstrip(".")):
            home_function = home_function.model_copy(update={"evidence": graded_function.evidence})
        if (
            home_function.state not in ("right", "unseen", "so_far")
            and home_function != graded_function
        ) or (
            graded_function.state in ("unwritten", "undefined") and home_function != graded_function
        ):
            differences.append(f"graded {graded_function}, at home {home_function}")
    return differences
