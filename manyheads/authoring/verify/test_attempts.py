"""Claims about attempts: stubs, right ones, and wrong ones that no mutant stands for.

Stubs score 0, right attempts score full, and the wrong ones get no diagnosis.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ...checks.runner import LocalRecordingRunner, namespace_of
from ...course import Exercise
from ...diagnosis.recording_file import current, read
from ...report.report_content import out_of
from ...result import ExerciseResult
from ...student.check_attempt import check_attempt
from ...submission import Source
from ..stub import stub_of
from .plugin import NOTHING, Report, Verified
from .wrong_programs import SECRET

claim = pytest.mark.claim
FAIR = "let that check ask for no more than the exercise says, or mend the attempt"
ANOTHER = "or add a mutant of its kind"


@claim("leave no verdict of a check to chance")
def test_every_seed(verified: Verified, exercise: Exercise, attempt: Path) -> None:
    """A right or unlisted wrong attempt has the same points and names with every seed."""
    names_by_seed = list[set[str]]()
    for seed, reference in enumerate(verified.references(exercise)):
        runner = LocalRecordingRunner(namespace_of(attempt))
        ends = verified.catalogue.run(exercise, runner, reference, SECRET, str(seed), exercise.id)
        failed = {end.id: end.suspect for end in ends if end.outcome != "passed"}
        # No misconception counts if a failed check shows none.
        names = () if "" in failed.values() else failed.values()
        names_by_seed.append({*failed, *names})
    by_chance = ", ".join(
        sorted({name for seed_names in names_by_seed for name in seed_names ^ names_by_seed[0]})
    )
    assert not by_chance, f"{attempt.name} fails or is named {by_chance} by the seed"
    names_by_seed[1:] or pytest.skip(NOTHING)


@claim("let the checks ask for what is to be written, or mark it as solution in {solution}")
def test_stub(verified: Verified, exercise: Exercise) -> None:
    """The untouched stub scores 0."""
    result = verified.grade(exercise, stub_of(exercise))
    names = [d.id for d in result.diagnosis]
    expected = [] if current(exercise) is None else ["stub_untouched"]
    assert (result.score, names) == (0, expected), f"scores {out_of(result)}, named {names}"


@claim(f"let a check tell it from what it is named, {ANOTHER}")
def test_wrong(verified: Verified, exercise: Exercise, wrong: Path) -> None:
    """An unlisted wrong attempt fails and gets no diagnosis."""
    _assert_unlisted(wrong, verified.grade(exercise, wrong))


@claim(FAIR)
def test_right(verified: Verified, exercise: Exercise, right: Path, report: Report) -> None:
    """Every right attempt scores full in float32 and in float64."""
    graded = {
        dtype: verified.grade(exercise, right, dtype=dtype) for dtype in ("float32", "float64")
    }
    failing = {
        dtype: result for dtype, result in graded.items() if result.score != result.max_score
    }
    report(
        len(graded),
        [f"{right.name}, {dtype}: {_problems(result)}" for dtype, result in failing.items()],
    )


@claim(f"course release; let a check ask what tells it from a right one, {ANOTHER}")
def test_wrong_at_home(exercise: Exercise, wrong: Path) -> None:
    """An unlisted wrong attempt fails `course check` and gets no diagnosis there."""
    _assert_unlisted(wrong, _at_home(exercise, wrong))


@claim(f"course release, then {FAIR}")
def test_right_at_home(exercise: Exercise, right: Path) -> None:
    """Every right attempt passes `course check`."""
    problems = _problems(_at_home(exercise, right))
    assert not problems, f"{right.name}: {problems}"


def _at_home(exercise: Exercise, path: Path) -> ExerciseResult:
    recording = read(exercise.fingerprints)
    source = Source(path.name, path.read_text(encoding="utf-8"))
    return check_attempt(recording, LocalRecordingRunner(namespace_of(path)), source, exercise)


def _assert_unlisted(path: Path, result: ExerciseResult) -> None:
    assert not result.is_done, f"{path.name} passes"
    assert not result.diagnosis, f"{path.name} is named {[d.id for d in result.diagnosis]}"


def _problems(result: ExerciseResult) -> str:
    return "; ".join(
        f"{c.id}: {c.outcome}, {c.evidence}" for c in result.checks if c.outcome != "passed"
    )
