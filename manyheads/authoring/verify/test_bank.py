"""Claims about the bank: mutants are caught and named.

The same holds for pairs of mutants, for numbers between the listed ones, and beside unfinished
functions.
"""

from __future__ import annotations

from itertools import takewhile
from unittest import mock

import pytest
import torch
from torch import nn

from ...diagnosis import BuiltMutant
from ...diagnosis.bank import ParametricMutant
from .plugin import Report
from .wrong_programs import Trials

claim = pytest.mark.claim
PAIR_SHARE = 0.55  # About thirty pairs are drawn, and each new mutant changes the draw.
VERDICT_SHARE = 0.97  # recordings hold no random numbers, and not all that a hidden check asks
UNFINISHED_SHARE = 0.9  # the share of stubs beside which a mistake must keep its name


@claim("let a check in {checks} ask for more, or take the mutant out")
def test_caught(trials: Trials, mutant: BuiltMutant) -> None:
    """Every mutant fails a check."""
    assert trials.failed_checks(mutant), f"{_label(mutant)} passes every check"


@claim("mend its edit in {misconceptions}")
def test_runs(trials: Trials, mutant: BuiltMutant) -> None:
    """Every mutant uses only names that are defined."""
    message = trials.report_of(mutant).unknown_name
    assert not message, f"{_label(mutant)} answers no call: {message}"


@claim("add one that fails it to {misconceptions}, or take the check out")
def test_used(trials: Trials, report: Report) -> None:
    """Every check is failed by a mutant."""
    failed = {check for mutant in trials.bank.mutants for check in trials.failed_checks(mutant)}
    hidden = trials.recording.hidden
    report(len(hidden), [f"{id_} is failed by no mutant" for id_ in hidden if id_ not in failed])


@claim("give both one id in {misconceptions}, or let a check tell them apart")
def test_named(trials: Trials, mutant: BuiltMutant) -> None:
    """Every mutant that answers is named first."""
    mutant_report = trials.report_of(mutant)
    if mutant_report.stops:
        pytest.skip("none answers")
    if mutant_report.is_first(mutant.id):
        # Checks may show another misconception on their own. The list ends before the first check
        # that shows none, or shows this one.
        suspects = [
            *takewhile(lambda suspect: suspect not in ("", mutant.id), trials.suspects(mutant))
        ]
        is_anothers = 0 < len(suspects) == len(trials.failed_checks(mutant))
        assert not is_anothers, f"{_label(mutant)} fails only checks that prove {suspects[-1]}"
    elif mutant_report.names or mutant.id not in trials.suspects(mutant):
        raise AssertionError(
            f"{_label(mutant)} is named {mutant_report.names}{_why_unnamed(trials, mutant)}"
        )


@claim("course release {id}", share=VERDICT_SHARE)
def test_verdicts(trials: Trials, mutant: BuiltMutant, report: Report) -> None:
    """Every visible check gives the hidden check's verdict."""
    # no visible check replaces a condition
    failed, unmet = trials.failed_checks(mutant), trials.failed_checks(mutant, "2")
    visible = [
        c for c in trials.report_of(mutant).checks if c.outcome != "skipped" and c.id not in unmet
    ]
    mismatches = []
    for check in visible:
        if (check.outcome == "passed") == (check.id in failed):
            verdict = "fails" if check.id in failed else "passes"
            mismatches.append(f"{_label(mutant)}: {check.id} {verdict} when graded alone")
    report(len(visible), mismatches)


@claim("let a check tell these pairs from others", share=PAIR_SHARE)
def test_pairs(trials: Trials, pair: tuple[BuiltMutant, BuiltMutant]) -> None:
    """Both faults of a pair are named."""
    first, second = pair
    namespace = trials.bank.combine(first, second)
    if namespace is None or any(
        m.faults == {**first.faults, **second.faults} for m in trials.bank.mutants
    ):
        pytest.skip("none meet")  # or the bank lists the combination as a single mutant
    mutant_report = trials.mutant_report(namespace)
    if mutant_report.behaviour in [trials.report_of(mutant).behaviour for mutant in pair]:
        pytest.skip("none answers otherwise than each fault alone")
    names = {name for d in mutant_report.named for name in (d.id, *d.alternatives)}
    is_named = {first.id, second.id} <= names or trials.behaves_like_simpler(
        pair, mutant_report.behaviour, names
    )
    assert is_named, f"{_label(first)} and {_label(second)} are named {mutant_report.names}"


@claim("let a check tell these numbers from others, or narrow the family's limits")
def test_numbers(trials: Trials, number: tuple[ParametricMutant, dict[str, object]]) -> None:
    """A mistake with a number is named at numbers that are not listed."""
    family, knobs = number
    mutant_report = trials.mutant_report(family.make(**knobs))
    assert mutant_report.is_first(family.id), (
        f"{family.id} ({knobs}) is named {mutant_report.names}"
    )


@claim("let a check that asks one function alone tell these from others", share=UNFINISHED_SHARE)
def test_unfinished(trials: Trials, some_mutant: BuiltMutant, report: Report) -> None:
    """A mistake keeps its name while later functions are stubs."""
    # It keeps its name if the report on the mutant with these stubs still names it first.
    detected, lost = 0, list[str]()
    for program in trials.unfinished_programs:
        mutant_report = trials.mutant_report({**some_mutant.namespace, **program.stubs})
        # A mutant that behaves like the reference has its fault in a stub.
        if mutant_report.behaviour == program.report.behaviour:
            continue
        detected += 1
        if not mutant_report.is_first(some_mutant.id):
            label = f"{_label(some_mutant)} before {program.first_stub}"
            lost.append(f"{label}: {mutant_report.names}")
    report(detected, lost)


@claim("let no check compare weights that nobody gave, then course verify {id}")
def test_weights(trials: Trials, module_mutant: BuiltMutant) -> None:
    """Every mutant has the same names if its layers begin with other weights."""
    default_names, begin = trials.report_of(module_mutant).names, nn.Linear.reset_parameters
    with mock.patch.object(
        nn.Linear, "reset_parameters", lambda layer: (torch.rand(1), begin(layer))
    ):
        names = trials.mutant_report(module_mutant.namespace).names
    # The names may also change without other weights, because the mutant keeps state between calls.
    # A hidden check may show the misconception of a mutant that makes its layers in each call.
    if names != default_names and (names or module_mutant.id not in trials.suspects(module_mutant)):
        assert names == trials.mutant_report(module_mutant.namespace).names, (
            f"{module_mutant.id} is named {default_names}, then {names}"
        )


def _why_unnamed(trials: Trials, mutant: BuiltMutant) -> str:
    """Return a clause if rounding may decide all wrong replies of a mutant; "" otherwise."""
    calls = trials.by_rounding(mutant)
    if not calls:
        return ""
    checks = ", ".join(
        check.id for check in trials.recording.checks if not set(calls).isdisjoint(check.calls)
    )
    check_list = f" ({checks})" if checks else ""
    return (
        ": its answers differ from the reference's only in calls in which rounding may decide"
        f" them{check_list}, and those are not recorded. Let a check ask where they differ by more,"
        " or at equal numbers with exact sums, such as 4.0"
    )


def _label(mutant: BuiltMutant) -> str:
    return f"{mutant.id} ({', '.join(f'{k}={v!r}' for k, v in mutant.faults.items())})"
