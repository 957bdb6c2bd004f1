"""Look up the mutants, or the pair of mutants, that explain the response of an attempt."""

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

# With fewer wrong calls, in one function or in all, too many pairs of mutants fit.
MIN_WRONG_IN_FUNCTION, MIN_WRONG = 6, 3
MAX_ALTERNATIVES = 1  # for a candidate that only exceptions support
# In edge cases of a mistake a mutant may miss one in 12 calls, and one in 6 wrong answers.
CALLS_PER_MISS, WRONG_PER_MISS = 12, 6


def explain(
    row: Response, proofs: Iterable[Set[int]], *, is_little: bool = False
) -> Sequence[Candidate]:
    """Return the candidates that explain the whole response, or none.

    They are looked up in this order: single mutants, mutants that explain nondeterminism, a
    parametric mutant with a number that is not listed, a recorded pair of mutants.

    Args:
        row: the response.
        proofs: sets of calls with direct evidence, which no mutant need explain. The response is
            looked up with all calls, and without each of these sets.
        is_little: whether the calls are too few to tell a pair of mutants from a mistake that is
            not in the bank.
    """
    rows = reduced_rows(row, proofs)
    if faults := _first_explanation(smallest_cover, rows):
        return faults
    calls, names = due_to_chance(row)
    remainder = row.without(calls)
    if names and ((faults := smallest_cover(remainder)) or not remainder.syndrome):
        return [*(fault for fault in faults if fault.id not in names), *map(Candidate, names)]
    faults = _first_explanation(on_a_curve, rows)
    if faults or is_little:
        return faults
    rows = [response for response in rows if len(response.syndrome) >= MIN_WRONG]
    return _first_explanation(partial(explaining_pair, cover=smallest_cover), rows)


def reduced_rows(row: Response, proofs: Iterable[Set[int]]) -> list[Response]:
    """Return the response, and the response without each of these sets of calls.

    Responses without a syndrome are left out.
    """
    excluded = dict.fromkeys(frozenset(calls & row.calls) for calls in proofs)
    rows = [row, *(row.without(calls) for calls in excluded if calls)]
    return [response for response in rows if response.syndrome]


def explain_functions(row: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return candidates for each function alone, for a response that nothing explains as a whole.

    A candidate must be consistent with the calls of the functions before it, too.
    """
    explained: dict[str, Candidate] = {}
    for calls, earlier in _functions(row):
        if len(calls & row.syndrome.keys()) < 2:  # one wrong call is too little evidence
            continue
        alone = row.subset(calls | (earlier - row.syndrome.keys()))
        faults = smallest_cover(row.subset(calls | earlier), calls) or explain(
            alone, proofs, is_little=len(alone.syndrome) < MIN_WRONG_IN_FUNCTION
        )
        for fault in faults:
            # If all calls have the same head_dim, some number imitates many mistakes.
            if of_one_number(row.recording).isdisjoint(fault.ids) or on_a_curve(
                row.subset(calls), listed=True
            ):
                explained.setdefault(fault.id, fault)
    return tuple(explained.values())


def explain_behind(row: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return one candidate for all calls that raise, and another for all wrong answers."""
    return _first_explanation(_behind, reduced_rows(row, proofs))


def _behind(row: Response) -> Sequence[Candidate]:
    stopped = {i for i, e in row.syndrome.items() if e.actual.raised is not None}
    answered = row.syndrome.keys() - stopped
    if stopped and len(answered) > 1:  # one wrong answer is too little evidence
        match [smallest_cover(row.without(calls)) for calls in (answered, stopped)]:
            case [[stops], [behind]] if {*stops.ids}.isdisjoint(behind.ids):
                return [stops, behind]
    return ()


def explain_two(row: Response, proofs: Iterable[Set[int]], bank: Bank) -> Sequence[Candidate]:
    """Return two mutants that, combined in one program, reply as the attempt does.

    If no pair fits all functions, return a pair that fits one function.
    """
    rows = reduced_rows(row, proofs)
    for calls, earlier in _functions(row):
        alone = row.subset(calls | (earlier - row.syndrome.keys()))
        if len(alone.syndrome) >= MIN_WRONG_IN_FUNCTION:
            rows += reduced_rows(alone, proofs)
    return _first_explanation(partial(made_pair, bank=bank), rows)


def _first_explanation(
    explains: Callable[[Response], Sequence[Candidate]], rows: Iterable[Response]
) -> Sequence[Candidate]:
    return next(filter(None, map(explains, rows)), ())


def _functions(row: Response) -> Iterator[tuple[Set[int], Set[int]]]:
    """Yield for each function its calls, and the answered calls of the functions before it.

    A function may call those before it. The functions have the order of the recorded calls, which
    is the order of their definitions. If there is only one function, nothing is yielded.
    """
    targets = [target_of(call) for call in row.recording.calls]
    functions = list(dict.fromkeys(targets))
    answered = {i for i, e in row.written.items() if e.reply.outputs and e.reply.raised is None}
    for position, function in enumerate(functions if len(functions) > 1 else ()):
        calls = {i for i in row.calls if targets[i] == function}
        yield calls, {i for i in row.calls & answered if targets[i] in functions[:position]}


def explain_nearly(row: Response) -> Sequence[Candidate]:
    """Return the only misconception that matches all but a few calls, or none.

    One mistake written in two ways differs in edge cases, such as a size of 1 or a sum close to 0.
    Exceptions alone are too little evidence.
    """
    calls = sorted(row.calls & row.written.keys())
    wrong_answers = sum(observation.reply.raised is None for observation in row.syndrome.values())
    allowed = min(len(calls) // CALLS_PER_MISS, wrong_answers // WRONG_PER_MISS)
    near = set[str]()
    for m in range(len(row.recording.mutants) if allowed else 0):
        missed = (i for i in calls if not row.matches(m, i))
        if row.id(m) not in near and len([*islice(missed, allowed + 1)]) <= allowed:
            near.add(row.id(m))
    # If few calls have another head_dim, many fixed numbers are nearly right. Only the sweep tells.
    return (
        [Candidate(next(iter(near)))]
        if len(near) == 1 and near.isdisjoint(of_one_number(row.recording))
        else []
    )


def explain_by_kind(row: Response) -> Sequence[Candidate]:
    """Return the only misconception that explains the response if sizes in messages may differ.

    One mistake written in two ways raises with two messages. Exceptions alone are too little
    evidence.
    """
    is_answered = any(observation.reply.raised is None for observation in row.syndrome.values())
    faults = smallest_cover(replace(row, by_kind=True)) if is_answered else ()
    return faults if len(faults) == 1 and not faults[0].alternatives else ()


def smallest_cover(row: Response, calls: Set[int] | None = None) -> Sequence[Candidate]:
    """Return mutants that together explain the syndrome, or its part in `calls`, or none.

    This is a greedy set cover: the mutant that explains most calls comes first. Only mutants that
    are consistent with the response take part. If some call remains unexplained, return none.
    """
    syndrome = {i: e for i, e in row.syndrome.items() if calls is None or i in calls}
    impossible = {WRONG_AXIS} if has_foreign_size(syndrome.values()) else set[str]()
    explains, unknown = dict[int, frozenset[int]](), dict[int, int]()
    for m in range(len(row.recording.mutants)):
        if row.id(m) not in impossible and row.is_consistent(m):
            explained = frozenset(i for i in syndrome if row.explains(m, i))
            if not all(row.is_nondeterministic(m, i) for i in explained):
                explains[m] = explained
                unknown[m] = sum(row.is_nondeterministic(m, i) for i in row.calls)
    # a parametric mutant can imitate a mutant of another misconception, which is preferred
    by_number = {curve.id for curve in row.recording.sweeps}
    unexplained, faults = set(syndrome), list[Candidate]()
    while unexplained:
        best = max(
            explains,
            key=lambda m: (len(explains[m] & unexplained), -unknown[m], row.id(m) not in by_number),
            default=None,
        )
        if best is None or not explains[best] & unexplained:
            return []
        same = dict.fromkeys(row.id(m) for m in explains if explains[m] == explains[best])
        faults.append(Candidate(row.id(best), tuple(id_ for id_ in same if id_ != row.id(best))))
        unexplained -= explains[best]
    only_raises = all(comparison.reply.raised for comparison in syndrome.values())
    functions = {target_of(observation.call) for observation in syndrome.values()}
    answers = (row.written[i] for i in row.calls & row.written.keys())
    is_answered = any(e.actual.raised is None and target_of(e.call) in functions for e in answers)
    if only_raises and (
        not is_answered or any(len(fault.alternatives) > MAX_ALTERNATIVES for fault in faults)
    ):
        return []  # if every call raises, the exception shows where the code stops, not why
    return faults
