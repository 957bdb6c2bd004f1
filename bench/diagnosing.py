"""What a diagnosis costs beside the grading that it follows: mutants of every exercise, graded as attempts in the box.

python -m bench.diagnosing

Both are measured in one run, so the share holds on a busy machine as well. Each exercise's table is read before: a judge
does that once, however many students there are.
"""

from __future__ import annotations

from pathlib import Path

from grader.authoring.release import every_exercise
from grader.box.level import Level, open_box
from grader.course import Course, Exercise, load_course
from grader.judge.diagnosis import Mutant, load_bank
from grader.judge.grade import Judge, Settings
from grader.submission import AttemptSource

SAMPLE = 12  # mutants of each exercise, spread over its bank
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the share."""
    course = load_course(ROOT)
    with (
        open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box,
        Judge(course, box, Settings(b"bench")) as judge,
    ):
        _grade(course, judge, 1)
        before, diagnosing_before = judge.seconds, judge.seconds_diagnosing
        _grade(course, judge, SAMPLE)
        diagnosing = judge.seconds_diagnosing - diagnosing_before
        grading = judge.seconds - before - diagnosing
    print(f"A diagnosis adds {diagnosing / grading:.0%} to the time of grading a faulty attempt.")


def _grade(course: Course, judge: Judge, sample: int) -> None:
    """Grade so many mutants of each bank."""
    for assignment, exercise in every_exercise(course):
        mutants = load_bank(course, exercise).mutants
        for mutant in mutants[:: max(1, len(mutants) // sample)]:
            judge.grade_attempt("mutant", assignment, exercise, _as_attempt(course, exercise, mutant))


def _as_attempt(course: Course, exercise: Exercise, mutant: Mutant) -> AttemptSource:
    text = course.misconceptions(exercise).read_text(encoding="utf-8")
    knobs = ", ".join(f"{name}={value!r}" for name, value in mutant.knobs.items())
    return AttemptSource(f"{mutant.id}.py", f"{text}\n\nglobals().update(make({knobs}))\n")


if __name__ == "__main__":
    main()
