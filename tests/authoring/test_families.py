"""The claim about numbers that nobody has listed holds at the real course, and breaks where a family is not what it says."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.authoring.verify.bank_claims import verify_families
from manyheads.authoring.verify.claim import Claim, TrialRun
from manyheads.course import load_course
from manyheads.diagnosis import Bank, load_bank
from manyheads.diagnosis.family import Family
from manyheads.diagnosis.recording_file import read
from manyheads.judge.run_checks import Catalogue

pytestmark = pytest.mark.recorded


def claims(repository: Path, families: tuple[Family, ...] | None = None) -> list[Claim]:
    course = load_course(repository)
    exercise, catalogue = course.exercises[0], Catalogue(course)
    bank: Bank = load_bank(exercise)
    if families is not None:
        bank = replace(bank, families=families)
    return list(verify_families(exercise, bank, TrialRun(catalogue, exercise, bank, read(exercise.fingerprints)).told))


def test_it_holds(repository: Path) -> None:
    (claim,) = claims(repository)
    assert claim.failures == ()
    assert claim.held == claim.total == 6


def test_a_family_whose_mistake_has_another_name_breaks_it(repository: Path) -> None:
    scaled = load_bank(load_course(repository).exercises[0]).families[0]
    (claim,) = claims(repository, (replace(scaled, id="softmax_missing"), scaled))
    assert not claim.kept


def test_a_bank_without_families_claims_nothing(repository: Path) -> None:
    assert claims(repository, ()) == []
