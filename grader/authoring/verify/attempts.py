"""Claims about whole attempts, run in the box: stubs score nothing, right ones all, unlisted wrong ones get no name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...box.level import Box
from ...course import Assignment, Course, Exercise
from ...judge.grade import Judge, Settings
from ...public.attempt import check_source
from ...public.file import read
from ...result import ExerciseResult
from ...submission import AttemptSource
from ..release import stub_of
from .claim import SECRET, Claim

DTYPES = ("float64", "float32")
FAIR = "let that check ask for no more than the exercise says, or mend the attempt"


def verify_attempts(
    course: Course, box: Box, exercises: Sequence[tuple[Assignment, Exercise]], seeds: int
) -> Iterator[Claim]:
    """The claims about every exercise's right, untouched and unlisted wrong attempts."""
    ids = tuple(e.id for _, e in exercises)
    with Judge(course, box, Settings(SECRET, exercises=ids)) as judge:
        for assignment, exercise in exercises:
            yield _stub(course, judge, assignment, exercise)
            yield _wrong(course, judge, assignment, exercise)
            yield _checked(course, box, assignment, exercise)
    for dtype in DTYPES:
        with Judge(course, box, Settings(SECRET, exercises=ids, dtype=dtype)) as judge:
            for assignment, exercise in exercises:
                yield _right(course, judge, assignment, exercise, seeds, dtype)


def _stub(course: Course, judge: Judge, assignment: Assignment, exercise: Exercise) -> Claim:
    source = AttemptSource(f"{assignment.stem(exercise)}.py", stub_of(course, assignment, exercise))
    result = judge.grade_attempt("stub", assignment, exercise, source)
    names = [d.id for d in result.diagnosis]
    ok = result.score == 0 and names == ["stub_untouched"]
    failures = () if ok else (f"scores {result.score:g}, named {names}",)
    hide = f"let the checks ask for what is to be written, or mark it as solution in {course.solution(assignment, exercise).name}"
    return Claim(exercise.id, "the untouched stub scores 0", int(ok), 1, failures, next=hide)


def _right(course: Course, judge: Judge, assignment: Assignment, exercise: Exercise, seeds: int, dtype: str) -> Claim:
    paths, failures = _right_paths(course, assignment, exercise), []
    for path in paths:
        for seed in range(seeds):
            result = _grade(judge, assignment, exercise, path, seed)
            if result.score != result.max_score:
                failures.append(f"{path.name}, seed {seed}: {_problems(result)}")
    total = len(paths) * seeds
    says = f"every right attempt scores full ({len(paths)} attempts, {seeds} seeds, {dtype})"
    return Claim(exercise.id, says, total - len(failures), total, tuple(failures), next=FAIR)


def _checked(course: Course, box: Box, assignment: Assignment, exercise: Exercise) -> Claim:
    """What a student's own `course check` says of right attempts."""
    fingerprints = read(course.fingerprints(assignment, exercise))
    paths, failures = _right_paths(course, assignment, exercise), []
    for path in paths:
        result = check_source(fingerprints, _source(path), box, course.limits.for_worker())
        if any(c.outcome != "passed" for c in result.checks):
            failures.append(f"{path.name}: {_problems(result)}")
    says = "every right attempt passes `course check`"
    return Claim(
        exercise.id, says, len(paths) - len(failures), len(paths), tuple(failures), next=f"course release, then {FAIR}"
    )


def _wrong(course: Course, judge: Judge, assignment: Assignment, exercise: Exercise) -> Claim:
    paths = sorted((course.root / "grader" / "hidden" / "wrong" / exercise.id).glob("*.py"))
    failures = []
    for path in paths:
        result = _grade(judge, assignment, exercise, path)
        if result.score == result.max_score:
            failures.append(f"{path.name} scores full")
        elif result.diagnosis:
            failures.append(f"{path.name} is named {[d.id for d in result.diagnosis]}")
    says = "an unlisted wrong attempt fails and gets no name"
    more = "let a check tell it from what it is named, or add a mutant of its kind"
    return Claim(exercise.id, says, len(paths) - len(failures), len(paths), tuple(failures), next=more)


def _grade(judge: Judge, assignment: Assignment, exercise: Exercise, path: Path, seed: int = 0) -> ExerciseResult:
    return judge.grade_attempt(path.name, assignment, exercise, _source(path), seed)


def _right_paths(course: Course, assignment: Assignment, exercise: Exercise) -> list[Path]:
    return [course.solution(assignment, exercise), *course.right_attempts(exercise)]


def _source(path: Path) -> AttemptSource:
    return AttemptSource(path.name, path.read_text(encoding="utf-8"))


def _problems(result: ExerciseResult) -> str:
    return "; ".join(f"{c.id}: {c.outcome}, {c.evidence}" for c in result.checks if c.outcome != "passed")
