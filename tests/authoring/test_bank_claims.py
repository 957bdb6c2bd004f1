"""Internal: a whole run of these claims about the real course takes minutes.

The real course holds them. A lost name, another order or another family breaks them.
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
    return Trials(Catalogue(load_course(REPOSITORY)), exercise)


def claim_cases(name: str, exercise: Exercise, count: int | None = None) -> list[Any]:
    return list(CASES[name](SimpleNamespace(pairs=count), exercise))


def test_unlisted_numbers_are_named_and_those_of_another_mistake_break_the_claim():
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
    """How many mutants are asked beside functions that are stubs, and what is said of those that
    lose their name.
    """
    reports = list[tuple[int, list[str]]]()
    for mutant in claim_cases("some_mutant", trials.exercise, 20):
        claims.test_unfinished(trials, mutant, lambda *report: reports.append(report))
    return sum(count for count, _ in reports), [message for _, lost in reports for message in lost]


def test_mistakes_before_stubs_are_named_and_the_claim_breaks_if_names_get_lost(
    monkeypatch,
):
    trials = trials_of(RESHAPE)
    count, lost = unfinished_report(trials)
    assert (count > 3, lost) == (True, [])
    tell = trials.mutant_report

    def gives_up(namespace: Mapping[str, object]) -> MutantReport:
        mutant_report = tell(namespace)
        if any(check.outcome == "error" for check in mutant_report.checks):
            mutant_report.named, mutant_report.names = (), []
        return mutant_report

    monkeypatch.setattr(trials, "mutant_report", gives_up)
    assert [message.partition(" before ")[2] for message in unfinished_report(trials)[1]] == [
        "merge_heads: []"
    ] * count
    assert trials_of(EXERCISES["mha_by_loop"]).unfinished_programs == [], (
        "of one function there is nothing after it"
    )


def reads_the_weights(namespace: Mapping[str, Any]) -> MutantReport:
    torch.manual_seed(1)
    try:
        weight = f"{namespace['CausalAttention'](4, 4, 8).W_query.weight[0, 0]:.6f}"
    except (NotImplementedError, AttributeError):  # a mutant of which nothing is written, or kept
        weight = "none"
    diagnosed = Diagnosed(id=weight, title=weight, hint="")
    return MutantReport(Attribution(explaining=[LocatedMisconception(diagnosed)]))


def test_initial_weights_decide_no_name_and_a_diagnosis_that_reads_them_breaks_the_claim(
    monkeypatch,
):
    trials, mutants = trials_of(ATTENTION), claim_cases("module_mutant", ATTENTION, 3)
    for mutant in mutants:
        claims.test_weights(trials, mutant)
    monkeypatch.setattr(trials, "mutant_report", reads_the_weights)
    monkeypatch.setattr(trials, "report_of", lambda mutant: reads_the_weights(mutant.namespace))
    mutant = next(
        mutant for mutant in mutants if reads_the_weights(mutant.namespace).names != ["none"]
    )
    with pytest.raises(AssertionError, match=r" is named \['-?0\.\d+'\], then \["):
        claims.test_weights(trials, mutant)
    assert claim_cases("module_mutant", SCORES) == [], "an exercise without modules has none"
