"""`course check` on a machine without answers: recorded sequences name the mistakes, and hold no opaque part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.judge.attempt_runner import AttemptRunner
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_attempt
from manyheads.submission import AttemptSource
from tests.structures.conftest import MUTANTS, STREAMS

pytestmark = pytest.mark.recorded

Checked = Callable[[str, str], ExerciseResult]


@pytest.fixture(scope="module")
def checked(streams: Course, box: Box, exercise_of: Callable[[str], Exercise]) -> Checked:
    def check(exercise: str, text: str) -> ExerciseResult:
        found = exercise_of(exercise)
        attempt = AttemptRunner(box, AttemptSource(f"{found.stem}.py", text), streams.limits.for_worker())
        try:
            return check_attempt(read(found.fingerprints), attempt, text)
        finally:
            attempt.close()

    return check


@pytest.mark.parametrize(("exercise", "misconception"), MUTANTS)
def test_every_mistake_is_named_at_home(
    checked: Checked, mutant_of: Callable[[str, str], str], exercise: str, misconception: str
) -> None:
    result = checked(exercise, mutant_of(exercise, misconception))
    assert [each.id for each in result.diagnosis] == [misconception]


@pytest.mark.parametrize("path", sorted(STREAMS.glob("grader/right/*/*.py")), ids=lambda path: path.stem)
def test_what_is_right_passes_at_home(checked: Checked, path) -> None:
    result = checked(path.parent.name, path.read_text(encoding="utf-8"))
    assert [check.evidence for check in result.checks if check.outcome != "passed"] == []


def test_sequences_are_recorded_with_their_judged_parts_alone(exercise_of: Callable[[str], Exercise]) -> None:
    recorded = read(exercise_of("running_mean").fingerprints)
    chunks = [i for i, call in enumerate(recorded.calls) if len(call.steps) == 3]
    assert chunks
    for index in chunks:
        assert [each is None for each in recorded.expected[index]] == [False, True] * 3
        assert [each.projections == () for each in recorded.content.right(index).outputs] == [False, True] * 3
