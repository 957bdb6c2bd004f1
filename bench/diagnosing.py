"""What a diagnosis costs beside the grading that it follows: mutants of every exercise, graded as attempts in the box.

python -m bench.diagnosing

Both are measured in one run, so the share holds on a busy machine as well. Each exercise's table is read before: a judge
does that once, however many students there are.
"""

from __future__ import annotations

from pathlib import Path

from manyheads.box.level import Level, open_box
from manyheads.course import Course, load_course
from manyheads.diagnosis import load_bank
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import AttemptSource

from .names import text_of

SAMPLE = 12  # mutants of each exercise, spread over its bank
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the share."""
    course = load_course(ROOT)
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        judge = Judge(course, box, Settings(b"bench", lines=False))
        _grade(course, judge, 1)
        before, diagnosing_before = judge.seconds, judge.seconds_diagnosing
        _grade(course, judge, SAMPLE)
        diagnosing = judge.seconds_diagnosing - diagnosing_before
        grading = judge.seconds - before - diagnosing
    print(f"A diagnosis adds {diagnosing / grading:.0%} to the time of grading a faulty attempt.")


def _grade(course: Course, judge: Judge, sample: int) -> None:
    """Grade so many mutants of each bank."""
    for exercise in course.exercises:
        mutants = load_bank(exercise).mutants
        for mutant in mutants[:: max(1, len(mutants) // sample)]:
            judge.grade_attempt("mutant", exercise, AttemptSource(f"{mutant.id}.py", text_of(exercise, mutant)))


if __name__ == "__main__":
    main()
