"""The claim that the order of a student's layers decides no name: it holds, and breaks where an order is read."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.authoring.verify.attempt_claims import made_in_another_order, verify_order
from manyheads.authoring.verify.claim import Claim, Told, Trial, TrialRun
from manyheads.checks.local import namespace_of
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.recording_file import read
from manyheads.judge.run_checks import Catalogue
from manyheads.result import Diagnosed

pytestmark = pytest.mark.recorded


def exercise_of(repository: Path, place: int) -> Exercise:
    return load_course(repository).exercises[place]


def claims(exercise: Exercise, trial: Trial) -> list[Claim]:
    bank = replace(bank := load_bank(exercise), mutants=bank.mutants[:3])
    return list(verify_order(exercise, bank, trial, {id(m): trial(m.namespace) for m in bank.mutants}, None))


def test_it_holds(repository: Path) -> None:
    course = load_course(repository)
    exercise, catalogue = course.exercises[2], Catalogue(course)
    (claim,) = claims(exercise, TrialRun(catalogue, exercise, load_bank(exercise), read(exercise.fingerprints)).told)
    assert claim.failures == ()
    assert claim.held == claim.total == 3


def test_a_diagnosis_that_reads_the_order_breaks_it(repository: Path) -> None:
    def trial(namespace):
        try:
            first = next(iter(namespace["CausalAttention"](4, 4, 8)._modules), "none")
        except NotImplementedError:  # a mutant of which nothing is written
            first = "none"
        return Told((Diagnosed(id=first, title=first, hint=""),))

    (claim,) = claims(exercise_of(repository, 2), trial)
    assert not claim.kept


def test_an_exercise_without_modules_claims_nothing(repository: Path) -> None:
    assert claims(exercise_of(repository, 0), lambda namespace: Told(())) == []


def test_another_order_has_other_weights_and_is_gone_afterwards(repository: Path) -> None:
    namespace = namespace_of(exercise_of(repository, 2).solution)

    def made():
        torch.manual_seed(1)
        return namespace["CausalAttention"](4, 4, 8)

    usual = made()
    with made_in_another_order(namespace):
        other = made()
    assert list(other._modules) == list(usual._modules)[::-1]
    assert not torch.equal(other.W_query.weight, usual.W_query.weight)
    assert list(made()._modules) == list(usual._modules)
