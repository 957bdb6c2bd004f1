"""In which function each misconception was found, and what a student reads of those that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from ..checks.explain import kind_of
from ..checks.implementation import LocalRunner
from ..checks.local import ReplayRunner, Replays
from ..checks.outcome import CheckOutcome
from ..checks.recording import Exchange, target_of
from ..diagnosis.agree import agree
from ..diagnosis.bank import Bank
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED

LOOKED_AT = 4  # of the calls that a function answered wrongly
A_NUMBER = 1.7  # for a family of mutants: where it shows itself does not depend on the number

Shows = Callable[[str, str], bool]  # whether a misconception shows itself in a function


@dataclass(frozen=True)
class Ways:
    """How a misconception shows itself in a function.

    alike: a mutant answers one of its wrong calls as the attempt did. wholly: one mutant answers all of them so.
    wrongly: a mutant answers one of them wrongly: of two faults in one function neither answers as both do together.
    """

    alike: Shows
    wholly: Shows
    wrongly: Shows


def located(
    diagnosis: Sequence[Diagnosed],
    wrong: Sequence[str],
    own: Sequence[str],
    proven: Mapping[str, Set[str]],
    ways: Ways,
) -> tuple[Diagnosed, ...]:
    """The same, each with its function, and with others that have the same mistake and no name yet.

    Args:
        wrong: the functions that are wrong, in the order of the file.
        own: those of them in which that does not follow from another.
        proven: by a misconception's id, the functions of the checks or exceptions that prove it.
    """
    placed = [each.model_copy(update={"function": _place(each.id, wrong, proven, ways)}) for each in diagnosis]
    unnamed = [name for name in own if name not in {each.function for each in placed}]
    return tuple(
        each.model_copy(update={"also_in": tuple(n for n in unnamed if _is_also_in(each.id, n, proven, ways))})
        for each in placed
    )


def _is_also_in(id_: str, name: str, proven: Mapping[str, Set[str]], ways: Ways) -> bool:
    return id_ != UNTOUCHED and (name in proven.get(id_, ()) or ways.wholly(id_, name))


def _place(id_: str, wrong: Sequence[str], proven: Mapping[str, Set[str]], ways: Ways) -> str:
    if id_ == UNTOUCHED:
        return ""
    places = proven.get(id_, frozenset())
    if len(wrong) == 1 and places <= {*wrong}:
        return wrong[0]
    return next(
        chain(
            (name for name in wrong if name in places or ways.alike(id_, name)),
            sorted(places),  # a name that the file does not have
            (name for name in wrong if ways.wrongly(id_, name)),
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


def ways_of(bank: Bank, reference: LocalRunner, replays: Replays, wrong: Sequence[Exchange]) -> Ways:
    """How the bank's misconceptions show themselves in functions.

    wrong: the calls that the attempt answered wrongly.
    """

    def of(function: str) -> list[Exchange]:
        return [e for e in wrong if target_of(e.call) == function][:LOOKED_AT]

    def pairs(id_: str, function: str) -> Iterator[tuple[Exchange, LocalRunner]]:
        yield from ((e, mutant) for mutant in _mutants(bank, id_, replays) for e in of(function))

    def alike(id_: str, function: str) -> bool:
        return any(agree(e.reply, mutant.execute(e.call)) for e, mutant in pairs(id_, function))

    def wholly(id_: str, function: str) -> bool:
        calls = of(function)
        return bool(calls) and any(
            all(agree(e.reply, mutant.execute(e.call)) for e in calls) for mutant in _mutants(bank, id_, replays)
        )

    def wrongly(id_: str, function: str) -> bool:
        return any(not agree(mutant.execute(e.call), reference.execute(e.call)) for e, mutant in pairs(id_, function))

    return Ways(alike, wholly, wrongly)


def _mutants(bank: Bank, id_: str, replays: Replays) -> Iterator[LocalRunner]:
    for mutant in bank.mutants:
        if mutant.id == id_:
            yield ReplayRunner(mutant.namespace, only_values=True, replays=replays)
    for family in bank.families:
        if family.id == id_:
            yield LocalRunner(family.make(**family.knobs(A_NUMBER)), only_values=True)


def with_titles(diagnosis: Sequence[Diagnosed], titles: Mapping[str, str]) -> tuple[Diagnosed, ...]:
    """The same, with the titles of the alternatives that have one."""
    return tuple(
        each.model_copy(update={"alternative_titles": tuple(titles[a] for a in each.alternatives if titles.get(a))})
        for each in diagnosis
    )


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """The same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
