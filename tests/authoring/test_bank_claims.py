"""Internal: the functions of single claims are called, because all claims take minutes.

Claims about misconception banks hold for the real course, and break if a name is wrong.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from manyheads.authoring.verify import test_bank as claims
from manyheads.authoring.verify.plugin import CASES
from manyheads.authoring.verify.wrong_programs import MutantReport, Trials
from manyheads.course import Exercise, load_course
from manyheads.judge.attribute_public_replies import Attribution
from manyheads.judge.locate_misconceptions import LocatedMisconception
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.result import Diagnosed
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded

EXERCISES = {exercise.id: exercise for exercise in load_course(REPOSITORY).exercises}
SCORES, RESHAPE, ATTENTION = (
    EXERCISES[id_] for id_ in ("attention_scores", "reshape_dance", "self_attention")
)


@cache
def trials_of(exercise: Exercise) -> Trials:
    """Return what the claims need to run the mutants of an exercise."""
    return Trials(Catalogue(load_course(REPOSITORY)), exercise)


def claim_cases(name: str, exercise: Exercise, count: int | None = None) -> list[Any]:
    """Return the cases of a claim about this exercise. count: the number of cases, None for all."""
    return list(CASES[name](SimpleNamespace(pairs=count), exercise))


def test_the_claim_about_numbers_holds_and_breaks_with_another_name():
    numbers = claim_cases("number", SCORES)
    for number in numbers:
        claims.test_numbers(trials_of(SCORES), number)
    family, knobs = numbers[0]
    with pytest.raises(
        AssertionError, match=r"^softmax_missing \(.*\) is named \['scale_constant'"
    ):
        claims.test_numbers(trials_of(SCORES), (replace(family, id="softmax_missing"), knobs))
    assert claim_cases("number", RESHAPE) == [], "a bank without families has none"


def unfinished_report(trials: Trials) -> tuple[int, list[str]]:
    """Run mutants whose later functions are stubs.

    Returns:
        The number of such programs, and a message for each that loses its name.
    """
    reports = list[tuple[int, list[str]]]()
    for mutant in claim_cases("some_mutant", trials.exercise, 20):
        claims.test_unfinished(trials, mutant, lambda *report: reports.append(report))
    return sum(count for count, _ in reports), [message for _, lost in reports for message in lost]


def test_the_claim_about_stubs_holds_and_breaks_if_names_are_lost(
    monkeypatch,
):
    trials = trials_of(RESHAPE)
    count, lost = unfinished_report(trials)
    assert (count > 3, lost) == (True, [])
    original_report = trials.mutant_report

    def report_no_names_on_errors(namespace: Mapping[str, object]) -> MutantReport:
        mutant_report = original_report(namespace)
        if any(check.outcome == "error" for check in mutant_report.checks):
            mutant_report.named, mutant_report.names = (), []
        return mutant_report

    monkeypatch.setattr(trials, "mutant_report", report_no_names_on_errors)
    assert [message.partition(" before ")[2] for message in unfinished_report(trials)[1]] == [
        "merge_heads: []"
    ] * count
    assert trials_of(EXERCISES["mha_by_loop"]).unfinished_programs == [], (
        "of one function there is nothing after it"
    )


def report_named_after_weights(namespace: Mapping[str, Any]) -> MutantReport:
    """Return a report whose misconception depends on the initial weights of the module."""
    torch.manual_seed(1)
    try:
        weight = f"{namespace['CausalAttention'](4, 4, 8).W_query.weight[0, 0]:.6f}"
    except (NotImplementedError, AttributeError):  # a stub, or a mutant without this layer
        weight = "none"
    diagnosed = Diagnosed(id=weight, title=weight, hint="")
    return MutantReport(Attribution(explaining=[LocatedMisconception(diagnosed)]))


def test_the_claim_about_weights_holds_and_breaks_if_names_depend_on_them(
    monkeypatch,
):
    trials, mutants = trials_of(ATTENTION), claim_cases("module_mutant", ATTENTION, 3)
    for mutant in mutants:
        claims.test_weights(trials, mutant)
    monkeypatch.setattr(trials, "mutant_report", report_named_after_weights)
    monkeypatch.setattr(
        trials, "report_of", lambda mutant: report_named_after_weights(mutant.namespace)
    )
    mutant = next(
        mutant
        for mutant in mutants
        if report_named_after_weights(mutant.namespace).names != ["none"]
    )
    with pytest.raises(AssertionError, match=r" is named \['-?0\.\d+'\], then \["):
        claims.test_weights(trials, mutant)
    assert claim_cases("module_mutant", SCORES) == [], "an exercise without modules has none"
