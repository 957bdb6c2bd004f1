"""Claims about a bank: the real course holds them; a lost name, another order or another family breaks them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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


SCORES, RESHAPE, ATTENTION = (EXERCISES[id_] for id_ in ("attention_scores", "reshape_dance", "self_attention"))
SCALED = load_bank(SCORES).families


@pytest.mark.parametrize(("families", "kept"), [
    pytest.param(SCALED, [True], id="numbers that nobody has listed are named"),
    pytest.param((replace(SCALED[0], id="softmax_missing"), SCALED[0]), [False], id="a family whose mistake has another name breaks it"),
    pytest.param((), [], id="a bank without families claims nothing"),
])  # fmt: skip
def test_families(families: tuple[Family, ...], kept: list[bool]) -> None:
    bank = replace(load_bank(SCORES), families=families)
    claims = verify_families(SCORES, bank, trial_of(SCORES, bank).told)
    assert [claim.kept for claim in claims] == kept


def about_unfinished(exercise: Exercise, names_whole: bool = True) -> list[Claim]:
    """The claim; without `names_whole` a diagnosis gives up where anything was raised."""
    bank, recording = load_bank(exercise), read(exercise.fingerprints)
    whole = trial_of(exercise, bank)

    def trial(namespace: Mapping[str, object]) -> Told:
        told = whole.told(namespace)
        return told if names_whole or all(c.outcome != "error" for c in told.checks) else told._replace(named=())

    return list(verify_unfinished(exercise, bank, namespace_of(exercise.solution), recording, trial, 6))


def test_mistakes_before_functions_that_are_stubs_are_named_and_where_names_get_lost_the_claim_breaks() -> None:
    (claim,) = about_unfinished(RESHAPE)
    assert claim.failures == ()
    assert claim.held == claim.total > 3
    (claim,) = about_unfinished(RESHAPE, names_whole=False)
    assert (claim.held, claim.kept) == (0, False)
    assert all("before merge_heads: []" in failure for failure in claim.failures)
    assert about_unfinished(EXERCISES["mha_by_loop"]) == [], "of one function there is nothing after it"


def reads_the_order(namespace: Mapping[str, Any]) -> Told:
    try:
        first = next(iter(namespace["CausalAttention"](4, 4, 8)._modules), "none")
    except NotImplementedError:  # a mutant of which nothing is written
        first = "none"
    return Told((Diagnosed(id=first, title=first, hint=""),))


@pytest.mark.parametrize(("exercise", "trial", "kept"), [
    pytest.param(ATTENTION, None, [True], id="it decides no name"),
    pytest.param(ATTENTION, reads_the_order, [False], id="a diagnosis that reads it breaks the claim"),
    pytest.param(SCORES, lambda namespace: Told(()), [], id="an exercise without modules has none"),
])  # fmt: skip
def test_the_order_of_a_students_layers(exercise: Exercise, trial: Trial | None, kept: list[bool]) -> None:
    bank = load_bank(exercise)
    trial = trial or trial_of(exercise, bank).told
    bank = replace(bank, mutants=bank.mutants[:3])
    claims = verify_order(exercise, bank, trial, {id(m): trial(m.namespace) for m in bank.mutants}, None)
    assert [claim.kept for claim in claims] == kept


def test_another_order_has_other_weights_and_is_gone_afterwards() -> None:
    namespace = namespace_of(ATTENTION.solution)

    def made() -> Any:
        torch.manual_seed(1)
        return namespace["CausalAttention"](4, 4, 8)

    usual = made()
    with made_in_another_order(namespace):
        other = made()
    assert list(other._modules) == list(usual._modules)[::-1]
    assert not torch.equal(other.W_query.weight, usual.W_query.weight)
    assert list(made()._modules) == list(usual._modules)
