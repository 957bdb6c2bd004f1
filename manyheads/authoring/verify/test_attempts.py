"""Claims about attempts: stubs score 0, right ones full, and wrong ones that no mutant stands for get no name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...checks.local import LocalRecordingRunner, namespace_of
from ...course import Exercise
from ...diagnosis.recording_file import current, read
from ...report.words import out_of
from ...result import ExerciseResult
from ...student.check_attempt import check_attempt
from ..stub import stub_of
from .plugin import Report, Verified

claim = pytest.mark.claim
FAIR = "let that check ask for no more than the exercise says, or mend the attempt"
ANOTHER = "or add a mutant of its kind"


@claim("let the checks ask for what is to be written, or mark it as solution in {solution}")
def test_stub(verified: Verified, exercise: Exercise) -> None:
    """The untouched stub scores 0."""
    result = verified.grade(exercise, stub_of(exercise))
    names = [d.id for d in result.diagnosis]
    due = [] if current(exercise) is None else ["stub_untouched"]
    assert (result.score, names) == (0, due), f"scores {out_of(result)}, named {names}"


@claim(f"let a check tell it from what it is named, and leave no verdict to chance, {ANOTHER}")
def test_wrong(verified: Verified, exercise: Exercise, wrong: Path, seed: int) -> None:
    """An unlisted wrong attempt fails, gets no diagnosis, and has the same points with every seed."""
    first = verified.first(exercise, wrong)
    result = verified.grade(exercise, wrong, seed) if seed else first
    _assert_unlisted(wrong, result)
    assert result.score == first.score, f"{wrong.name} has {out_of(first)} or {out_of(result)}, by the seed"


@claim(f"course release; let a check ask what tells it from a right one, {ANOTHER}")
def test_wrong_at_home(exercise: Exercise, wrong: Path) -> None:
    """An unlisted wrong attempt fails `course check` and gets no diagnosis there."""
    _assert_unlisted(wrong, _at_home(exercise, wrong))


@claim(f"course release, then {FAIR}")
def test_right_at_home(exercise: Exercise, right: Path) -> None:
    """Every right attempt passes `course check`."""
    problems = _problems(_at_home(exercise, right))
    assert not problems, f"{right.name}: {problems}"


@claim(FAIR)
def test_right(verified: Verified, exercise: Exercise, right: Path, seed: int, report: Report) -> None:
    """Every right attempt scores full, with every seed in float64, with the first in float32."""
    dtypes = ("float32", "float64") if seed == 0 else ("float64",)
    graded = {dtype: verified.grade(exercise, right, seed, dtype=dtype) for dtype in dtypes}
    wrong = {dtype: _problems(result) for dtype, result in graded.items() if result.score != result.max_score}
    report(len(dtypes), [f"{right.name}, seed {seed}, {dtype}: {said}" for dtype, said in wrong.items()])


def _assert_unlisted(path: Path, result: ExerciseResult) -> None:
    assert not result.is_done, f"{path.name} passes"
    assert not result.diagnosis, f"{path.name} is named {[d.id for d in result.diagnosis]}"


def _at_home(exercise: Exercise, path: Path) -> ExerciseResult:
    recording, source = read(exercise.fingerprints), path.read_text(encoding="utf-8")
    return check_attempt(recording, LocalRecordingRunner(namespace_of(path)), source, exercise)


def _problems(result: ExerciseResult) -> str:
    return "; ".join(f"{c.id}: {c.outcome}, {c.evidence}" for c in result.checks if c.outcome != "passed")
