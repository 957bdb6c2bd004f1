"""In which function each misconception was found, and what a student reads of those that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from ..checks.explain import kind_of
from ..checks.implementation import LocalRunner
from ..checks.local import ReplayRunner, Replays
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..diagnosis.agree import agree, is_comparable
from ..diagnosis.bank import Bank
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED

LOOKED_AT = 4  # of the calls that a function answered wrongly
A_NUMBER = 1.7  # for a family of mutants: where it shows itself does not depend on the number

Mutant = TypeVar("Mutant")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Ways(Generic[Mutant, Asked]):
    """How misconceptions show themselves in functions.

    mutants: of a misconception, by its id. wrong, right: the calls of a function that the attempt answered so, as far as
    they can be compared. alike: whether a mutant answers a call as the attempt did. differs: whether it does so wrongly.
    looked_at: at how many wrong calls to look, where one is enough.
    """

    mutants: Callable[[str], Iterable[Mutant]]
    wrong: Callable[[str], Sequence[Asked]]
    right: Callable[[str], Sequence[Asked]]
    alike: Callable[[Mutant, Asked], bool]
    differs: Callable[[Mutant, Asked], bool]
    looked_at: int | None = None

    def is_seen(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of the function's wrong calls as the attempt did."""
        return any(self.alike(m, c) for m in self.mutants(id_) for c in self.wrong(function)[: self.looked_at])

    def is_all(self, id_: str, function: str) -> bool:
        """Return whether one mutant answers every call of the function as the attempt did."""
        wrong, right = self.wrong(function), self.right(function)
        return bool(wrong) and any(
            all(self.alike(m, c) for c in wrong) and not any(self.differs(m, c) for c in right)
            for m in self.mutants(id_)
        )

    def can_show(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of them wrongly: of two faults in one function neither answers as both do."""
        return any(self.differs(m, c) for m in self.mutants(id_) for c in self.wrong(function)[: self.looked_at])


def located(
    diagnosis: Sequence[Diagnosed],
    wrong: Sequence[str],
    own: Sequence[str],
    proven: Mapping[str, Set[str]],
    ways: Ways[Any, Any],
) -> tuple[Diagnosed, ...]:
    """Return the same, each with its function, and with others that have the same mistake and no name yet.

    Args:
        diagnosis: what is named.
        wrong: the functions that are wrong, in the order of the file.
        own: those of them in which that does not follow from another.
        proven: by a misconception's id, the functions of the checks or exceptions that prove it.
        ways: how mutants answer, graded or at home.
    """
    placed = [
        diagnosed.model_copy(update={"function": _place(diagnosed.id, wrong, proven, ways)}) for diagnosed in diagnosis
    ]
    unnamed = [name for name in own if name not in {diagnosed.function for diagnosed in placed}]
    return tuple(
        diagnosed.model_copy(
            update={"also_in": tuple(n for n in unnamed if _is_also_in(diagnosed.id, n, proven, ways))}
        )
        for diagnosed in placed
    )


def without_followers(
    placed: Sequence[Diagnosed],
    every: Sequence[Diagnosed],
    wrong: Sequence[str],
    used: Callable[[str], Set[str]],
    proven: Mapping[str, Set[str]],
) -> tuple[Diagnosed, ...]:
    """Return the same without names in functions that use another one that is wrong and has no name.

    What such a function answers may follow from that. What a check or an exception proves stays.

    Args:
        placed: names with their functions.
        every: those, and all others.
        wrong: the functions that are wrong.
        used: the functions that one uses.
        proven: by a misconception's id, the functions of the checks or exceptions that prove it.
    """
    named = {name for each in every for name in (each.function, *each.also_in)}
    unnamed = {*wrong} - named
    return tuple(d for d in placed if d.id in proven or not d.function or unnamed.isdisjoint(used(d.function)))


def _is_also_in(id_: str, name: str, proven: Mapping[str, Set[str]], ways: Ways[Any, Any]) -> bool:
    return id_ != UNTOUCHED and (name in proven.get(id_, ()) or ways.is_all(id_, name))


def _place(id_: str, wrong: Sequence[str], proven: Mapping[str, Set[str]], ways: Ways[Any, Any]) -> str:
    if id_ == UNTOUCHED:
        return ""
    places = proven.get(id_, frozenset())
    if len(wrong) == 1 and places <= {*wrong}:
        return wrong[0]
    return next(
        chain(
            (name for name in wrong if name in places or ways.is_seen(id_, name)),
            sorted(places),  # a name that the file does not have
            (name for name in wrong if ways.can_show(id_, name)),
            wrong,
        ),
        "",
    )


def proven_in(outcomes: Iterable[tuple[str, CheckOutcome]]) -> dict[str, set[str]]:
    """By the id of each misconception that failed checks prove by themselves, the functions where they failed.

    outcomes: each with the function where the check ended.
    """
    found: dict[str, set[str]] = {}
    for place, outcome in outcomes:
        kind = kind_of(outcome.raised) if outcome.raised is not None else None
        for name in (outcome.suspect, kind.misconception if kind else None):
            if name and outcome.outcome != "passed":
                found.setdefault(name, set()).update({place} - {""})
    return found


def ways_of(
    bank: Bank,
    reference: LocalRunner,
    replays: Replays,
    exchanges: Sequence[Exchange],
    is_right: Callable[[Exchange], bool],
) -> Ways[LocalRunner, Exchange]:
    """Return how the bank's misconceptions show themselves in functions. asked: the calls, with the attempt's replies."""
    calls: dict[tuple[str, bool], list[Exchange]] = {}
    for exchange in exchanges:
        if is_comparable(exchange.call):
            calls.setdefault((target_of(exchange.call), is_right(exchange)), []).append(exchange)
    return Ways(
        mutants=lambda id_: _mutants(bank, id_, replays),
        wrong=lambda function: calls.get((function, False), []),
        right=lambda function: calls.get((function, True), []),
        alike=lambda mutant, exchange: agree(exchange.reply, mutant.execute(exchange.call)),
        differs=lambda mutant, e: not agree(mutant.execute(e.call), reference.execute(e.call)),
        looked_at=LOOKED_AT,
    )


def _mutants(bank: Bank, id_: str, replays: Replays) -> Iterator[LocalRunner]:
    for mutant in bank.mutants:
        if mutant.id == id_:
            yield ReplayRunner(mutant.namespace, only_values=True, replays=replays)
    for family in bank.families:
        if family.id == id_:
            yield LocalRunner(family.make(**family.knobs(A_NUMBER)), only_values=True)


def with_titles(diagnosis: Sequence[Diagnosed], titles: Mapping[str, str]) -> tuple[Diagnosed, ...]:
    """Return the same, with the titles of the alternatives that have one."""
    return tuple(
        diagnosed.model_copy(
            update={"alternative_titles": tuple(titles[a] for a in diagnosed.alternatives if titles.get(a))}
        )
        for diagnosed in diagnosis
    )


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
