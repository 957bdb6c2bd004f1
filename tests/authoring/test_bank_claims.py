"""Claims about a bank: the real course holds them; a lost name, another order or another family breaks them."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from manyheads.authoring.verify.attempt_claims import made_in_another_order, verify_order
from manyheads.authoring.verify.bank_claims import verify_families, verify_unfinished
from manyheads.authoring.verify.claim import Claim, Told, Trial, TrialRun
from manyheads.checks.local import namespace_of
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import Bank, load_bank
from manyheads.diagnosis.family import Family
from manyheads.diagnosis.recording_file import read
from manyheads.judge.run_checks import Catalogue
from manyheads.result import Diagnosed
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded

COURSE = load_course(REPOSITORY)
EXERCISES = {exercise.id: exercise for exercise in COURSE.exercises}


def trial_of(exercise: Exercise, bank: Bank) -> TrialRun:
    return TrialRun(Catalogue(COURSE), exercise, bank, read(exercise.fingerprints))


def about_families(*families: Family) -> list[Claim]:
    exercise = EXERCISES["attention_scores"]
    bank = replace(load_bank(exercise), families=families)
    return list(verify_families(exercise, bank, trial_of(exercise, bank).told))


SCALED = load_bank(EXERCISES["attention_scores"]).families


def test_numbers_that_nobody_has_listed_are_named() -> None:
    (claim,) = about_families(*SCALED)
    assert (claim.failures, claim.held, claim.total) == ((), 6, 6)


def test_a_family_whose_mistake_has_another_name_breaks_it_and_a_bank_without_families_claims_nothing() -> None:
    (claim,) = about_families(replace(SCALED[0], id="softmax_missing"), SCALED[0])
    assert not claim.kept
    assert about_families() == []


def about_unfinished(id_: str, names_whole: bool = True) -> list[Claim]:
    """The claim; without `names_whole` a diagnosis gives up where anything was raised."""
    exercise = EXERCISES[id_]
    bank, recording = load_bank(exercise), read(exercise.fingerprints)
    whole = trial_of(exercise, bank)

    def trial(namespace: Mapping[str, object]) -> Told:
        told = whole.told(namespace)
        return told if names_whole or all(c.outcome != "error" for c in told.checks) else told._replace(named=())

    return list(verify_unfinished(exercise, bank, namespace_of(exercise.solution), recording, trial, 6))


def test_mistakes_before_functions_that_are_stubs_are_named() -> None:
    (claim,) = about_unfinished("reshape_dance")
    assert claim.failures == ()
    assert claim.held == claim.total > 3


def test_it_breaks_where_names_get_lost_and_an_exercise_of_one_function_has_nothing_after_it() -> None:
    (claim,) = about_unfinished("reshape_dance", names_whole=False)
    assert (claim.held, claim.kept) == (0, False)
    assert all("before merge_heads: []" in failure for failure in claim.failures)
    assert about_unfinished("mha_by_loop") == []


def about_order(id_: str, trial: Trial | None = None) -> list[Claim]:
    exercise = EXERCISES[id_]
    trial = trial or trial_of(exercise, load_bank(exercise)).told
    bank = replace(bank := load_bank(exercise), mutants=bank.mutants[:3])
    return list(verify_order(exercise, bank, trial, {id(m): trial(m.namespace) for m in bank.mutants}, None))


def test_the_order_of_a_students_layers_decides_no_name() -> None:
    (claim,) = about_order("self_attention")
    assert (claim.failures, claim.held, claim.total) == ((), 3, 3)
    assert about_order("attention_scores", lambda namespace: Told(())) == [], "it has no modules"


def test_a_diagnosis_that_reads_the_order_breaks_it() -> None:
    def trial(namespace):
        try:
            first = next(iter(namespace["CausalAttention"](4, 4, 8)._modules), "none")
        except NotImplementedError:  # a mutant of which nothing is written
            first = "none"
        return Told((Diagnosed(id=first, title=first, hint=""),))

    (claim,) = about_order("self_attention", trial)
    assert not claim.kept


def test_another_order_has_other_weights_and_is_gone_afterwards() -> None:
    namespace = namespace_of(EXERCISES["self_attention"].solution)

    def made():
        torch.manual_seed(1)
        return namespace["CausalAttention"](4, 4, 8)

    usual = made()
    with made_in_another_order(namespace):
        other = made()
    assert list(other._modules) == list(usual._modules)[::-1]
    assert not torch.equal(other.W_query.weight, usual.W_query.weight)
    assert list(made()._modules) == list(usual._modules)
