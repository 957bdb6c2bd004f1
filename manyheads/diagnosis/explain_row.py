"""Which mutants, or which pair of them, answer the recorded calls as an attempt does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice

from ..checks.runner import target_of
from .bank import Bank
from .curves import of_one_number, on_a_curve
from .diagnosis import Candidate
from .pairs import explaining_pair, made_pair
from .row import Response
from .same_places import WRONG_AXIS, has_foreign_size
from .varying_answers import due_to_chance

# wrong answers by which two faults can be told: in one function, in all of them
FEWEST, LEAST = 6, 3
MOST_ALTERNATIVES = 1  # of a name for which nothing but exceptions speaks
# one in 12 calls, and one in 6 wrong ones, may differ in an edge case of a mistake
EDGE, FEW = 12, 6


def explain(
    row: Response, proofs: Iterable[Set[int]], *, is_little: bool = False
) -> Sequence[Candidate]:
    """Return what explains the whole attempt: mutants, one with a number that is not listed, or a
    recorded pair.

    proofs: calls that prove a mistake of their own, which need be no mutant's; they are set aside.
    is_little: whether the calls are too few to tell two faults together from one that nobody has
        listed.
    """
    rows = reduced_rows(row, proofs)
    if faults := _first_explanation(smallest_cover, rows):
        return faults
    calls, names = due_to_chance(row)
    remainder = row.without(calls)
    if names and ((faults := smallest_cover(remainder)) or not remainder.syndrome):
        return [*(fault for fault in faults if fault.id not in names), *map(Candidate, names)]
    pairs = () if is_little else (response for response in rows if len(response.syndrome) >= LEAST)
    return _first_explanation(on_a_curve, rows) or _first_explanation(
        partial(explaining_pair, cover=smallest_cover), pairs
    )


def reduced_rows(row: Response, proofs: Iterable[Set[int]]) -> list[Response]:
    """Return the row, and what is left of it beside each of the proofs, where something is left to
    be explained.
    """
    excluded = dict.fromkeys(frozenset(calls & row.calls) for calls in proofs)
    rows = [row, *(row.without(calls) for calls in excluded if calls)]
    return [response for response in rows if response.syndrome]


def explain_functions(row: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return what explains each function alone, where nothing explains all, and does not contradict
    an earlier one.
    """
    explained: dict[str, Candidate] = {}
    # not by one
    for calls, earlier in (
        group for group in _functions(row) if len(group[0] & row.syndrome.keys()) > 1
    ):
        alone = row.subset(calls | (earlier - row.syndrome.keys()))
        faults = smallest_cover(row.subset(calls | earlier), calls) or explain(
            alone, proofs, is_little=len(alone.syndrome) < FEWEST
        )
        for fault in faults:
            # A function may be asked for one head_dim alone, and there a number imitates much.
            if of_one_number(row.recording).isdisjoint(fault.ids) or on_a_curve(
                row.subset(calls), listed=True
            ):
                explained.setdefault(fault.id, fault)
    return tuple(explained.values())


def explain_behind(row: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return one mistake that explains all calls that stop, and another that explains all wrong
    answers.
    """
    return _first_explanation(_behind, reduced_rows(row, proofs))


def _behind(row: Response) -> Sequence[Candidate]:
    stopped = {i for i, e in row.syndrome.items() if e.actual.raised is not None}
    answered = row.syndrome.keys() - stopped
    if stopped and len(answered) > 1:  # not by one
        match [smallest_cover(row.without(calls)) for calls in (answered, stopped)]:
            case [[stops], [behind]] if {*stops.ids}.isdisjoint(behind.ids):
                return [stops, behind]
    return ()


def explain_two(row: Response, proofs: Iterable[Set[int]], bank: Bank) -> Sequence[Candidate]:
    """Return two mutants that in one answer as the attempt does; else such a pair for one of its
    functions.
    """
    rows = [
        row,
        *(
            row.subset(calls | (earlier - row.syndrome.keys()))
            for calls, earlier in _functions(row)
        ),
    ]
    rows = [response for response in rows if response is row or len(response.syndrome) >= FEWEST]
    return _first_explanation(
        partial(made_pair, bank=bank),
        [response for subset in rows for response in reduced_rows(subset, proofs)],
    )


def _first_explanation(
    explains: Callable[[Response], Sequence[Candidate]], rows: Iterable[Response]
) -> Sequence[Candidate]:
    return next(filter(None, map(explains, rows)), ())


def _functions(row: Response) -> Iterator[tuple[Set[int], Set[int]]]:
    """Yield the calls of each function, and of those before it, which it may call; nothing where
    there is only one.

    Functions come in the order of the recorded calls, which is that of their definitions.
    """
    targets = [target_of(call) for call in row.recording.calls]
    functions = list(dict.fromkeys(targets))
    says_something = {
        i for i, e in row.written.items() if e.reply.outputs and e.reply.raised is None
    }
    for position, function in enumerate(functions if len(functions) > 1 else ()):
        calls = {i for i in row.calls if targets[i] == function}
        yield calls, {i for i in row.calls & says_something if targets[i] in functions[:position]}


def explain_nearly(row: Response) -> Sequence[Candidate]:
    """Return the only misconception that explains all but a few calls, and nearly all wrong
    answers.

    One mistake written in two ways differs in edge cases: where a size is 1, or a sum is close
    to 0. Exceptions alone are too little evidence.
    """
    calls = sorted(row.calls & row.written.keys())
    wrong_answers = sum(observation.reply.raised is None for observation in row.syndrome.values())
    allowed = min(len(calls) // EDGE, wrong_answers // FEW)
    near = set[str]()
    for m in range(len(row.recording.mutants) if allowed else 0):
        missed = (i for i in calls if not row.matches(m, i))
        if row.id(m) not in near and len([*islice(missed, allowed + 1)]) <= allowed:
            near.add(row.id(m))
    # One number is nearly right where few calls have another head_dim: its curve tells more.
    return (
        [Candidate(next(iter(near)))]
        if len(near) == 1 and near.isdisjoint(of_one_number(row.recording))
        else []
    )


def explain_by_kind(row: Response) -> Sequence[Candidate]:
    """Return the only misconception that explains what is answered, where exceptions of one kind
    may tell of other sizes.

    One mistake written in two ways stops with two messages.
    """
    is_answered = any(observation.reply.raised is None for observation in row.syndrome.values())
    faults = smallest_cover(replace(row, by_kind=True)) if is_answered else ()
    return faults if len(faults) == 1 and not faults[0].alternatives else ()


def smallest_cover(row: Response, calls: Set[int] | None = None) -> Sequence[Candidate]:
    """Return mutants that together explain all calls that are wrong, or those of `calls`; the one
    that explains most first.

    Not a mutant that is wrong elsewhere, or in another way.
    """
    syndrome = {i: e for i, e in row.syndrome.items() if calls is None or i in calls}
    impossible = {WRONG_AXIS} if has_foreign_size(syndrome.values()) else set[str]()
    mutants = [
        m
        for m in range(len(row.recording.mutants))
        if row.id(m) not in impossible and row.is_consistent(m)
    ]
    explains = {m: frozenset(i for i in syndrome if row.explains(m, i)) for m in mutants}
    # not by chance
    mutants = [m for m in mutants if not all(row.is_nondeterministic(m, i) for i in explains[m])]
    unknown = {m: sum(row.is_nondeterministic(m, i) for i in row.calls) for m in mutants}
    # a number can imitate what has a name of its own
    by_number = {curve.id for curve in row.recording.sweeps}
    unexplained, faults = set(syndrome), list[Candidate]()
    while unexplained:
        best = max(
            mutants,
            key=lambda m: (len(explains[m] & unexplained), -unknown[m], row.id(m) not in by_number),
            default=None,
        )
        if best is None or not explains[best] & unexplained:
            return []  # something remains that nothing explains: name nothing
        same = dict.fromkeys(row.id(m) for m in mutants if explains[m] == explains[best])
        faults.append(Candidate(row.id(best), tuple(id_ for id_ in same if id_ != row.id(best))))
        unexplained -= explains[best]
    only_raises = all(comparison.reply.raised for comparison in syndrome.values())
    functions = {target_of(observation.call) for observation in syndrome.values()}
    answers = (row.written[i] for i in row.calls & row.written.keys())
    is_answered = any(e.actual.raised is None and target_of(e.call) in functions for e in answers)
    if only_raises and (
        not is_answered or any(len(fault.alternatives) > MOST_ALTERNATIVES for fault in faults)
    ):
        return []  # where every call raises, the exception says where it stops, and not why
    return faults
