"""The claim about time: a diagnosis costs little beside the grading that it follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...box.level import Box
from ...course import Assignment, Course, Exercise
from ...judge.diagnosis import Mutant, load_bank
from ...judge.grade import Judge, Settings
from ...submission import AttemptSource
from .claim import SECRET, Claim

MOST = 0.3  # of the time that the same attempts take to grade
SAMPLE = 12  # mutants of each exercise, spread over its bank


def verify_timing(course: Course, box: Box, exercises: Sequence[tuple[Assignment, Exercise]]) -> Iterator[Claim]:
    """Grade mutants as attempts, in the box; the seconds are of one run, so the ratio holds on a busy machine as well.

    Each exercise's table is read before: a judge does that once, however many students there are.
    """
    with Judge(course, box, Settings(SECRET, exercises=tuple(e.id for _, e in exercises))) as judge:

        def grade(sample: int) -> tuple[float, float]:
            """Seconds spent so far, and how many of them on diagnoses, once so many mutants of each bank are graded."""
            for assignment, exercise in exercises:
                mutants = load_bank(course, exercise).mutants
                for mutant in mutants[:: max(1, len(mutants) // sample)]:
                    judge.grade_attempt("mutant", assignment, exercise, _as_attempt(course, exercise, mutant))
            return judge.seconds, judge.seconds_diagnosing

        before, diagnosing_before = grade(1)
        seconds, diagnosing = grade(SAMPLE)
    yield claim(seconds - before - (diagnosing - diagnosing_before), diagnosing - diagnosing_before)


def claim(grading: float, diagnosing: float) -> Claim:
    """Whether the second is at most MOST of the first. Both in seconds."""
    share = diagnosing / max(grading, 1e-9)
    says = f"a diagnosis adds at most {MOST:.0%} to the time of grading: {share:.0%} here"
    return Claim("diagnosis", says, int(share <= MOST), 1, () if share <= MOST else (f"{share:.0%}",))


def _as_attempt(course: Course, exercise: Exercise, mutant: Mutant) -> AttemptSource:
    text = course.misconceptions(exercise).read_text(encoding="utf-8")
    knobs = ", ".join(f"{name}={value!r}" for name, value in mutant.knobs.items())
    return AttemptSource(f"{mutant.id}.py", f"{text}\n\nglobals().update(make({knobs}))\n")
