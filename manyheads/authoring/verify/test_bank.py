"""Claims about the bank: every mutant and every pair is named, at any number, and beside unfinished
functions.
"""

from __future__ import annotations

from itertools import takewhile
from unittest import mock

import pytest
import torch
from torch import nn

from ...diagnosis import Mutant
from ...diagnosis.family import Family
from .plugin import Report
from .trials import Trials

claim = pytest.mark.claim
PAIR_SHARE = 0.55  # of some thirty that are drawn: each mutant that is added draws others
VERDICT_SHARE = 0.97  # recordings hold no random numbers, and not all that a hidden check asks
UNFINISHED_SHARE = 0.9


@claim("let a check in {checks} ask for more, or take the mutant out")
def test_caught(trials: Trials, mutant: Mutant) -> None:
    """Every mutant fails a check."""
    assert trials.failed(mutant), f"{_label(mutant)} passes every check"


@claim("add one that fails it to {misconceptions}, or take the check out")
def test_used(trials: Trials, report: Report) -> None:
    """Every check is failed by a mutant."""
    failed, hidden = (
        {c for mutant in trials.bank.mutants for c in trials.failed(mutant)},
        trials.recording.hidden,
    )
    report(len(hidden), [f"{id_} is failed by no mutant" for id_ in hidden if id_ not in failed])


@claim("give both one id in {misconceptions}, or let a check tell them apart")
def test_named(trials: Trials, mutant: Mutant) -> None:
    """Every mutant that answers is named first."""
    told = trials.alone(mutant)
    if told.stops:
        pytest.skip("none answers")
    if told.is_first(mutant.id):
        # Another misconception that each check proves by itself, up to the first that proves none,
        # or this one.
        others = [
            *takewhile(lambda suspect: suspect not in ("", mutant.id), trials.suspects(mutant))
        ]
        is_anothers = 0 < len(others) == len(trials.failed(mutant))
        assert not is_anothers, f"{_label(mutant)} fails only checks that prove {others[-1]}"
    elif told.names or mutant.id not in trials.suspects(mutant):
        raise AssertionError(
            f"{_label(mutant)} is named {told.names}{_why_unnamed(trials, mutant)}"
        )


@claim("course release {id}", share=VERDICT_SHARE)
def test_verdicts(trials: Trials, mutant: Mutant, report: Report) -> None:
    """Every visible check gives the hidden check's verdict."""
    # what a condition asks, no visible check does
    failed, unmet = trials.failed(mutant), trials.failed(mutant, "2")
    visible = [
        c for c in trials.alone(mutant).checks if c.outcome != "skipped" and c.id not in unmet
    ]
    wrong = [
        (
            f"{_label(mutant)}: {check.id} {'fails' if check.id in failed else 'passes'} when "
            "graded alone"
        )
        for check in visible
        if (check.outcome == "passed") == (check.id in failed)
    ]
    report(len(visible), wrong)


@claim("let a check tell these pairs from others", share=PAIR_SHARE)
def test_pairs(trials: Trials, pair: tuple[Mutant, Mutant]) -> None:
    """Both faults of a pair are named."""
    first, second = pair
    namespace = trials.bank.combine(first, second)
    if namespace is None or any(
        m.faults == {**first.faults, **second.faults} for m in trials.bank.mutants
    ):
        pytest.skip("none meet")  # or they are a mutant of their own
    told = trials.told(namespace)
    if told.seen in [trials.alone(each).seen for each in pair]:
        pytest.skip("none answers otherwise than each fault alone")
    named = {name for d in told.named for name in (d.id, *d.alternatives)}
    expected = [{first.id, second.id}, *trials.simpler(first, second, told)]
    assert any(each <= named for each in expected), (
        f"{_label(first)} and {_label(second)} are named {told.names}"
    )


@claim("let a check tell these numbers from others, or narrow the family's limits")
def test_numbers(trials: Trials, number: tuple[Family, dict[str, object]]) -> None:
    """A mistake with a number is named at numbers that are not listed."""
    family, knobs = number
    told = trials.told(family.make(**knobs))
    assert told.is_first(family.id), f"{family.id} ({knobs}) is named {told.names}"


@claim("let a check that asks one function alone tell these from others", share=UNFINISHED_SHARE)
def test_unfinished(trials: Trials, some_mutant: Mutant, report: Report) -> None:
    """A mistake keeps its name while later functions are stubs."""
    every = [
        (name, trials.told({**some_mutant.namespace, **stubs}), right)
        for name, stubs, right in trials.unfinished
    ]
    # else its fault is in a stub
    seen = {name: told for name, told, right in every if told.seen != right.seen}
    lost = {name: told.names for name, told in seen.items() if not told.is_first(some_mutant.id)}
    report(
        len(seen), [f"{_label(some_mutant)} before {name}: {named}" for name, named in lost.items()]
    )


@claim("let no check compare weights that nobody gave, then course verify {id}")
def test_weights(trials: Trials, module_mutant: Mutant) -> None:
    """Every mutant has the same names if its layers begin with other weights."""
    first, begin = trials.alone(module_mutant).names, nn.Linear.reset_parameters
    with mock.patch.object(
        nn.Linear, "reset_parameters", lambda layer: (torch.rand(1), begin(layer))
    ):
        then = trials.told(module_mutant.namespace).names
    # What it keeps from call to call may be why; of layers that are made anew in each call a hidden
    # check proves it.
    if then != first and (then or module_mutant.id not in trials.suspects(module_mutant)):
        assert then == trials.told(module_mutant.namespace).names, (
            f"{module_mutant.id} is named {first}, then {then}"
        )


def _why_unnamed(trials: Trials, mutant: Mutant) -> str:
    calls = trials.by_rounding(mutant)
    if not calls:
        return ""
    checks = ", ".join(
        check.id for check in trials.recording.checks if not set(calls).isdisjoint(check.calls)
    )
    asked = f" ({checks})" if checks else ""
    return (
        ": its answers differ from the reference's only in calls in which rounding may decide "
        f"them{asked}, and those are not recorded. Let a check ask where they differ by more, or "
        "at equal numbers with exact sums, such as 4.0"
    )


def _label(mutant: Mutant) -> str:
    return f"{mutant.id} ({', '.join(f'{k}={v!r}' for k, v in mutant.faults.items())})"
