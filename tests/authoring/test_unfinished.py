"""The claim about mistakes before functions that are stubs holds at the real course, and breaks where names get lost."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from manyheads.authoring.verify.bank_claims import verify_unfinished
from manyheads.authoring.verify.claim import Claim, Told, TrialRun
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.recording_file import read
from manyheads.judge.run_checks import Catalogue

pytestmark = pytest.mark.recorded


@pytest.fixture(scope="module")
def course(repository: Path) -> Course:
    return load_course(repository)


def exercise_of(course: Course, id_: str) -> Exercise:
    return next(e for e in course.exercises if e.id == id_)


def claims(course: Course, exercise: Exercise, names_whole: bool) -> list[Claim]:
    """The claim; without `names_whole` a diagnosis gives up where anything was raised."""
    catalogue, bank = Catalogue(course), load_bank(exercise)
    recording = read(exercise.fingerprints)
    reference, whole = catalogue.reference(exercise), TrialRun(catalogue, exercise, bank, recording)

    def trial(namespace: Mapping[str, object]) -> Told:
        told = whole.told(namespace)
        return told if names_whole or all(c.outcome != "error" for c in told.checks) else told._replace(named=())

    return list(verify_unfinished(exercise, bank, reference.namespace, recording, trial, 6))


def test_it_holds(course: Course) -> None:
    (claim,) = claims(course, exercise_of(course, "reshape_dance"), names_whole=True)
    assert claim.failures == ()
    assert claim.held == claim.total > 3


def test_it_breaks_where_names_get_lost(course: Course) -> None:
    (claim,) = claims(course, exercise_of(course, "reshape_dance"), names_whole=False)
    assert (claim.held, claim.kept) == (0, False)
    assert all("before merge_heads: []" in failure for failure in claim.failures)


def test_an_exercise_of_one_function_has_nothing_after_it(course: Course) -> None:
    assert claims(course, exercise_of(course, "mha_by_loop"), names_whole=True) == []
