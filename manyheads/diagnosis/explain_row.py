"""Which mutants, or which pair of them, answer the recorded calls as an attempt does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice

from ..checks.transcript import target_of
from .bank import Bank
from .curves import of_one_number, on_a_curve
from .diagnosis import Fault
from .pairs import explaining_pair, made_pair
from .row import Row
from .same_places import WRONG_AXIS, has_foreign_size
from .varying_answers import due_to_chance

# wrong answers by which two faults can be told: in one function, in all of them
FEWEST, LEAST = 6, 3
MOST_ALTERNATIVES = 1  # of a name for which nothing but exceptions speaks
# one in 12 calls, and one in 6 wrong ones, may differ in an edge case of a mistake
EDGE, FEW = 12, 6


def explain(row: Row, proofs: Iterable[Set[int]], *, is_little: bool = False) -> Sequence[Fault]:
    """Return what explains the whole attempt: mutants, one with a number that is not listed, or a
    recorded pair.

    proofs: calls that prove a mistake of their own, which need be no mutant's; they are set aside.
    is_little: whether the calls are too few to tell two faults together from one that nobody has
        listed.
    """
    rows = beside(row, proofs)
    if faults := _first(cover, rows):
        return faults
    calls, names = due_to_chance(row)
    rest = row.without(calls)
    if names and ((faults := cover(rest)) or not rest.wrong):
        return [*(fault for fault in faults if fault.id not in names), *map(Fault, names)]
    pairs = () if is_little else (each for each in rows if len(each.wrong) >= LEAST)
    return _first(on_a_curve, rows) or _first(partial(explaining_pair, cover=cover), pairs)


def beside(row: Row, proofs: Iterable[Set[int]]) -> list[Row]:
    """Return the row, and what is left of it beside each of the proofs, where something is left to
    be explained.
    """
    aside = dict.fromkeys(frozenset(calls & row.asked) for calls in proofs)
    rows = [row, *(row.without(calls) for calls in aside if calls)]
    return [each for each in rows if each.wrong]


def explain_functions(row: Row, proofs: Iterable[Set[int]]) -> Sequence[Fault]:
    """Return what explains each function alone, where nothing explains all, and does not contradict
    an earlier one.
    """
    found: dict[str, Fault] = {}
    # not by one
    for own, earlier in (each for each in _functions(row) if len(each[0] & row.wrong.keys()) > 1):
        alone = row.of(own | (earlier - row.wrong.keys()))
        faults = cover(row.of(own | earlier), own) or explain(
            alone, proofs, is_little=len(alone.wrong) < FEWEST
        )
        for fault in faults:
            # A function may be asked for one head_dim alone, and there a number imitates much.
            if of_one_number(row.recording).isdisjoint(fault.ids) or on_a_curve(
                row.of(own), listed=True
            ):
                found.setdefault(fault.id, fault)
    return tuple(found.values())


def explain_behind(row: Row, proofs: Iterable[Set[int]]) -> Sequence[Fault]:
    """Return one mistake that explains all calls that stop, and another that explains all wrong
    answers.
    """
    return _first(_behind, beside(row, proofs))


def _behind(row: Row) -> Sequence[Fault]:
    stopped = {i for i, e in row.wrong.items() if e.found.raised is not None}
    answered = row.wrong.keys() - stopped
    if stopped and len(answered) > 1:  # not by one
        match [cover(row.without(calls)) for calls in (answered, stopped)]:
            case [[stops], [behind]] if {*stops.ids}.isdisjoint(behind.ids):
                return [stops, behind]
    return ()


def explain_two(row: Row, proofs: Iterable[Set[int]], bank: Bank) -> Sequence[Fault]:
    """Return two mutants that in one answer as the attempt does; else such a pair for one of its
    functions.
    """
    rows = [row, *(row.of(own | (earlier - row.wrong.keys())) for own, earlier in _functions(row))]
    rows = [each for each in rows if each is row or len(each.wrong) >= FEWEST]
    return _first(
        partial(made_pair, bank=bank), [each for one in rows for each in beside(one, proofs)]
    )


def _first(explains: Callable[[Row], Sequence[Fault]], rows: Iterable[Row]) -> Sequence[Fault]:
    return next(filter(None, map(explains, rows)), ())


def _functions(row: Row) -> Iterator[tuple[Set[int], Set[int]]]:
    """Yield the calls of each function, and of those before it, which it may call; nothing where
    there is only one.

    Functions come in the order of the recorded calls, which is that of their definitions.
    """
    targets = [target_of(call) for call in row.recording.calls]
    functions = list(dict.fromkeys(targets))
    says_something = {
        i for i, e in row.written.items() if e.reply.outputs and e.reply.raised is None
    }
    for place, function in enumerate(functions if len(functions) > 1 else ()):
        own = {i for i in row.asked if targets[i] == function}
        yield own, {i for i in row.asked & says_something if targets[i] in functions[:place]}


def explain_nearly(row: Row) -> Sequence[Fault]:
    """Return the only misconception that explains all but a few calls, and nearly all wrong
    answers.

    One mistake written in two ways differs in edge cases: where a size is 1, or a sum is close
    to 0. Exceptions alone are too little evidence.
    """
    calls = sorted(row.asked & row.written.keys())
    wrong = sum(each.reply.raised is None for each in row.wrong.values())
    allowed = min(len(calls) // EDGE, wrong // FEW)
    near = set[str]()
    for m in range(len(row.recording.mutants) if allowed else 0):
        missed = (i for i in calls if not row.is_as(m, i))
        if row.id(m) not in near and len([*islice(missed, allowed + 1)]) <= allowed:
            near.add(row.id(m))
    # One number is nearly right where few calls have another head_dim: its curve tells more.
    return (
        [Fault(next(iter(near)))]
        if len(near) == 1 and near.isdisjoint(of_one_number(row.recording))
        else []
    )


def explain_by_kind(row: Row) -> Sequence[Fault]:
    """Return the only misconception that explains what is answered, where exceptions of one kind
    may tell of other sizes.

    One mistake written in two ways stops with two messages.
    """
    is_answered = any(each.reply.raised is None for each in row.wrong.values())
    faults = cover(replace(row, by_kind=True)) if is_answered else ()
    return faults if len(faults) == 1 and not faults[0].alternatives else ()


def cover(row: Row, own: Set[int] | None = None) -> Sequence[Fault]:
    """Return mutants that together explain all calls that are wrong, or those of `own`; the one
    that explains most first.

    Not a mutant that is wrong elsewhere, or in another way.
    """
    wrong = {i: e for i, e in row.wrong.items() if own is None or i in own}
    impossible = {WRONG_AXIS} if has_foreign_size(wrong.values()) else set[str]()
    mutants = [
        m
        for m in range(len(row.recording.mutants))
        if row.id(m) not in impossible and row.allows(m)
    ]
    explains = {m: frozenset(i for i in wrong if row.explains(m, i)) for m in mutants}
    # not by chance
    mutants = [m for m in mutants if not all(row.varies(m, i) for i in explains[m])]
    unknown = {m: sum(row.varies(m, i) for i in row.asked) for m in mutants}
    # a number can imitate what has a name of its own
    by_number = {curve.id for curve in row.recording.curves}
    left, faults = set(wrong), list[Fault]()
    while left:
        best = max(
            mutants,
            key=lambda m: (len(explains[m] & left), -unknown[m], row.id(m) not in by_number),
            default=None,
        )
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        same = dict.fromkeys(row.id(m) for m in mutants if explains[m] == explains[best])
        faults.append(Fault(row.id(best), tuple(id_ for id_ in same if id_ != row.id(best))))
        left -= explains[best]
    only_raises = all(comparison.reply.raised for comparison in wrong.values())
    functions = {target_of(each.call) for each in wrong.values()}
    answers = (row.written[i] for i in row.asked & row.written.keys())
    is_answered = any(e.found.raised is None and target_of(e.call) in functions for e in answers)
    if only_raises and (
        not is_answered or any(len(fault.alternatives) > MOST_ALTERNATIVES for fault in faults)
    ):
        return []  # where every call raises, the exception says where it stops, and not why
    return faults
