"""How many pairs of faults are tried: pairs count, not the ways in which members of two classes can be combined."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from manyheads.diagnosis.pair_candidates import members_of
from manyheads.diagnosis.search import Mutants, explain_values
from manyheads.diagnosis.table import table_without_recording

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LARGE, CachedRunner, LocalRecordingRunner, Replays
from manyheads.checks.transcript import Exchange
from manyheads.diagnosis import search
from manyheads.diagnosis.bank import Bank, Mutant, Namespace


def shifted(plus: float = 0.0, times: float = 1.0, power: int = 1) -> Namespace:
    return {"shifted": lambda x: x**power * times + plus}


CHANGES: tuple[dict[str, float], ...] = (
    *({"plus": n} for n in (1.0, 2.0, 3.0)),
    *({"times": n} for n in (2.0, 3.0, 4.0)),
    {"power": 2},
)
BANK = Bank(shifted, tuple(Mutant("+".join(change), change, shifted(**change)) for change in CHANGES), {})
# Without a probe nothing is ruled out: pairs come in the order of their classes, the first with nine combinations.
TABLE = dataclasses.replace(
    table_without_recording(BANK), classes=((0, 1, 2), (3, 4, 5), (6,)), silent=torch.ones(3, 0).bool()
)


@pytest.mark.parametrize(("most_pairs", "expected"), [(2, ["plus", "power"]), (1, [])])
def test_a_pair_with_many_combinations_counts_once(most_pairs: int, expected: list[str]) -> None:
    both = shifted(plus=1.0, power=2)
    reference = CachedRunner(shifted(), "cpu", only_values=True, replays=Replays())
    call = Call("shifted", (torch.arange(5.0).double(),))
    exchanges = [Exchange("check", call, LocalRunner(both).execute(call))]
    found = explain_values(Mutants(BANK, lambda: TABLE, LocalRecordingRunner(both), reference), exchanges, most_pairs)
    assert [fault.id for fault in found or ()] == expected


@pytest.mark.parametrize(("answers", "expected"), [(100, ["plus", "power"]), (10, [])])
def test_after_so_many_large_answers_no_more_pairs_are_tried(
    monkeypatch: pytest.MonkeyPatch, answers: int, expected: list[str]
) -> None:
    both, call = shifted(plus=1.0, power=2), Call("shifted", (torch.linspace(0, 4, LARGE // 8 + 1).double(),))
    replays = Replays({id(call)})
    reference = CachedRunner(shifted(), "cpu", only_values=True, replays=replays)
    exchanges = [Exchange("check", call, LocalRunner(both).execute(call))]
    monkeypatch.setattr(search, "MOST_LARGE", answers * LARGE)
    found = explain_values(Mutants(BANK, lambda: TABLE, LocalRecordingRunner(both), reference), exchanges)
    assert [fault.id for fault in found or ()] == expected
    assert reference.large_bytes >= 10 * LARGE
    assert CachedRunner(shifted(), "cpu", only_values=True, replays=replays).large_bytes == 0, "of its own diagnosis"


def test_a_mutant_whose_known_answer_differs_is_asked_nothing_more() -> None:
    asked: list[Call] = []

    def noted(x: torch.Tensor) -> torch.Tensor:
        asked.append(first if len(x) == 5 else second)
        return x + 1

    first, second = (Call("shifted", (torch.arange(n).double(),)) for n in (5.0, 6.0))
    reference = CachedRunner(shifted(), "cpu", only_values=True, replays=Replays({id(first), id(second)}))
    bank = Bank(None, (Mutant("plus", {"plus": 1}, {"shifted": noted}),), {})
    table = dataclasses.replace(TABLE, classes=((0,),), silent=torch.ones(1, 0).bool())
    attempt = shifted(times=2)
    exchanges = [Exchange("check", call, LocalRunner(attempt).execute(call)) for call in (first, second)]
    reference.of(bank.mutants[0].namespace).execute(second)
    mutants = Mutants(bank, lambda: table, LocalRecordingRunner(attempt), reference)
    assert explain_values(mutants, exchanges) is None
    assert asked == [second]


def test_of_mutants_that_raise_those_are_left_that_answer_where_the_attempt_does() -> None:
    def at_most(size: int) -> Namespace:
        return {"shifted": lambda x: x[: size + 1].view(-1, len(x)) if len(x) > size else x}

    bank = Bank(None, tuple(Mutant("hard_coded_shape", {"size": n}, at_most(n)) for n in (3, 6)), {})
    table = dataclasses.replace(TABLE, classes=((0, 1),))
    reference = CachedRunner(shifted(), "cpu", only_values=True, replays=Replays())
    call = Call("shifted", (torch.arange(5.0).double(),))
    reply = LocalRunner(at_most(6)).execute(call)
    assert list(members_of(bank, table, reference, [Exchange("", call, reply)])(0)) == [1]
    assert list(members_of(bank, table, reference, [Exchange("check", call, reply)])(0)) == [0, 1]
