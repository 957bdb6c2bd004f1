"""In which function each misconception was found, and what a student reads of those that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from ..diagnosis.diagnosis import AllWords, Diagnosis
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED
from .function_states import uses, with_own_mistake

Mutant = TypeVar("Mutant")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Ways(Generic[Mutant, Asked]):
    """How misconceptions show themselves in functions.

    mutants: of a misconception, by its id. calls: by a function, and whether the attempt answered them rightly, as far as
    they can be compared. alike: whether a mutant answers a call as the attempt did. differs: whether it does so wrongly.
    """

    mutants: Callable[[str], Iterable[Mutant]]
    calls: Mapping[tuple[str, bool], Sequence[Asked]]
    alike: Callable[[Mutant, Asked], bool]
    differs: Callable[[Mutant, Asked], bool]

    def is_seen(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of the function's wrong calls as the attempt did."""
        return any(self.alike(m, c) for m in self.mutants(id_) for c in self._wrong(function))

    def is_all(self, id_: str, function: str) -> bool:
        """Return whether one mutant answers every call of the function as the attempt did."""
        wrong, right = self._wrong(function), self.calls.get((function, True), ())
        return bool(wrong) and any(
            all(self.alike(m, c) for c in wrong) and not any(self.differs(m, c) for c in right)
            for m in self.mutants(id_)
        )

    def can_show(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of them wrongly: of two faults in one function neither answers as both do."""
        return any(self.differs(m, c) for m in self.mutants(id_) for c in self._wrong(function))

    def _wrong(self, function: str) -> Sequence[Asked]:
        return self.calls.get((function, False), ())


def with_functions(
    diagnosis: Diagnosis,
    wrong: Sequence[str],
    source: str,
    proven: Mapping[str, Set[str]],
    ways: Ways[Any, Any],
    words: AllWords,
) -> Diagnosis:
    """Return the diagnosis, each misconception with its functions and the titles of its alternatives; none that may follow.

    Args:
        diagnosis: what is named.
        wrong: the functions that are written and wrong, in the order of the file.
        source: the attempt's text.
        proven: by a misconception's id, the functions of the checks or exceptions that prove it.
        ways: how mutants answer, graded or at home.
        words: about the misconceptions.
    """
    own = with_own_mistake(wrong, source)
    placed = diagnosis.changed(lambda found: _with_titles(_located(found, wrong, own, proven, ways), words))
    unnamed = {*wrong}.difference(*((each.function, *each.also_in) for each in placed.every))

    def may_follow(each: Diagnosed) -> bool:  # from another function that is wrong and has no name
        return each.id not in proven and bool(each.function) and not unnamed.isdisjoint(uses(source, each.function))

    return placed.changed(lambda found: tuple(each for each in found if not may_follow(each)))


def _located(
    diagnosis: Sequence[Diagnosed],
    wrong: Sequence[str],
    own: Sequence[str],
    proven: Mapping[str, Set[str]],
    ways: Ways[Any, Any],
) -> tuple[Diagnosed, ...]:
    """Return the same, each with its function, and with others that have the same mistake and no name yet.

    own: those of the wrong functions in which that does not follow from another.
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


def _with_titles(diagnosis: Sequence[Diagnosed], words: AllWords) -> tuple[Diagnosed, ...]:
    """Return the same, with the titles of the alternatives that have one."""
    titles = {id_: each.title for id_, each in words.items() if each.title}
    return tuple(
        diagnosed.model_copy(
            update={"alternative_titles": tuple(titles[a] for a in diagnosed.alternatives if a in titles)}
        )
        for diagnosed in diagnosis
    )


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
