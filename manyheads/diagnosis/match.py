"""Find the mutants, pairs of mutants or numbers of a family that answer as an attempt does.

The answers of a family to a few calls are a curve through the space of all projections, along the
logarithm of its number. An attempt is a point there. It has the mistake of the family if the point
lies on the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from ..checks.runner import target_of
from .bank import Bank, Candidate, Sweep, form_of, numbers_of
from .fault_dictionary import FaultDictionary, Response
from .fingerprint import SMALLEST, ReplyFingerprint
from .nondeterminism import due_to_chance
from .pairs import explaining_pair, made_pair
from .pass_fail import WRONG_AXIS, has_foreign_size

# With fewer wrong calls, in one function or in all, too many pairs of mutants fit.
MIN_WRONG_IN_FUNCTION, MIN_WRONG = 6, 3
MAX_ALTERNATIVES = 1  # for a candidate that only exceptions support
# In edge cases of a mistake a mutant may miss one in 12 calls, and one in 6 wrong answers.
CALLS_PER_MISS, WRONG_PER_MISS = 12, 6


def explain(
    response: Response, proofs: Iterable[Set[int]], *, is_little: bool = False
) -> Sequence[Candidate]:
    """Return the candidates that explain the whole response, or none.

    They are looked up in this order: single mutants, mutants that explain nondeterminism, a
    parametric mutant with a number that is not listed, a recorded pair of mutants.

    Args:
        response: the response.
        proofs: sets of calls with direct evidence, which no mutant need explain. The response is
            looked up with all calls, and without each of these sets.
        is_little: whether the calls are too few to tell a pair of mutants from a mistake that is
            not in the bank.
    """
    rows = reduced_rows(response, proofs)
    if faults := _first_explanation(smallest_cover, rows):
        return faults
    calls, names = due_to_chance(response)
    remainder = response.without(calls)
    if names and ((faults := smallest_cover(remainder)) or not remainder.syndrome):
        return [*(fault for fault in faults if fault.id not in names), *map(Candidate, names)]
    faults = _first_explanation(on_a_curve, rows)
    if faults or is_little:
        return faults
    rows = [response for response in rows if len(response.syndrome) >= MIN_WRONG]
    return _first_explanation(partial(explaining_pair, cover=smallest_cover), rows)


def reduced_rows(response: Response, proofs: Iterable[Set[int]]) -> list[Response]:
    """Return the response, and the response without each of these sets of calls.

    Responses without a syndrome are left out.
    """
    excluded = dict.fromkeys(frozenset(calls & response.calls) for calls in proofs)
    rows = [response, *(response.without(calls) for calls in excluded if calls)]
    return [response for response in rows if response.syndrome]


def explain_functions(response: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return candidates for each function alone, for a response that nothing explains as a whole.

    A candidate must be consistent with the calls of the functions before it, too.
    """
    explained: dict[str, Candidate] = {}
    for calls, earlier in _functions(response):
        if len(calls & response.syndrome.keys()) < 2:  # one wrong call is too little evidence
            continue
        alone = response.subset(calls | (earlier - response.syndrome.keys()))
        faults = smallest_cover(response.subset(calls | earlier), calls) or explain(
            alone, proofs, is_little=len(alone.syndrome) < MIN_WRONG_IN_FUNCTION
        )
        for fault in faults:
            # If all calls have the same head_dim, some number imitates many mistakes.
            if of_one_number(response.recording).isdisjoint(fault.ids) or on_a_curve(
                response.subset(calls), listed=True
            ):
                explained.setdefault(fault.id, fault)
    return tuple(explained.values())


def explain_behind(response: Response, proofs: Iterable[Set[int]]) -> Sequence[Candidate]:
    """Return one candidate for all calls that raise, and another for all wrong answers."""
    return _first_explanation(_behind, reduced_rows(response, proofs))


def _behind(response: Response) -> Sequence[Candidate]:
    stopped = {i for i, e in response.syndrome.items() if e.actual.raised is not None}
    answered = response.syndrome.keys() - stopped
    if stopped and len(answered) > 1:  # one wrong answer is too little evidence
        match [smallest_cover(response.without(calls)) for calls in (answered, stopped)]:
            case [[stops], [behind]] if {*stops.ids}.isdisjoint(behind.ids):
                return [stops, behind]
    return ()


def explain_two(response: Response, proofs: Iterable[Set[int]], bank: Bank) -> Sequence[Candidate]:
    """Return two mutants that, combined in one program, reply as the attempt does.

    If no pair fits all functions, return a pair that fits one function.
    """
    rows = reduced_rows(response, proofs)
    for calls, earlier in _functions(response):
        alone = response.subset(calls | (earlier - response.syndrome.keys()))
        if len(alone.syndrome) >= MIN_WRONG_IN_FUNCTION:
            rows += reduced_rows(alone, proofs)
    return _first_explanation(partial(made_pair, bank=bank), rows)


def _first_explanation(
    explains: Callable[[Response], Sequence[Candidate]], rows: Iterable[Response]
) -> Sequence[Candidate]:
    return next(filter(None, map(explains, rows)), ())


def _functions(response: Response) -> Iterator[tuple[Set[int], Set[int]]]:
    """Yield for each function its calls, and the answered calls of the functions before it.

    A function may call those before it. The functions have the order of the recorded calls, which
    is the order of their definitions. If there is only one function, nothing is yielded.
    """
    targets = [target_of(call) for call in response.recording.calls]
    functions = list(dict.fromkeys(targets))
    answered = {
        i for i, e in response.written.items() if e.reply.outputs and e.reply.raised is None
    }
    for position, function in enumerate(functions if len(functions) > 1 else ()):
        calls = {i for i in response.calls if targets[i] == function}
        yield calls, {i for i in response.calls & answered if targets[i] in functions[:position]}


def explain_nearly(response: Response) -> Sequence[Candidate]:
    """Return the only misconception that matches all but a few calls, or none.

    One mistake written in two ways differs in edge cases, such as a size of 1 or a sum close to 0.
    Exceptions alone are too little evidence.
    """
    calls = sorted(response.calls & response.written.keys())
    wrong_answers = sum(
        observation.reply.raised is None for observation in response.syndrome.values()
    )
    allowed = min(len(calls) // CALLS_PER_MISS, wrong_answers // WRONG_PER_MISS)
    near = set[str]()
    for m in range(len(response.recording.mutants) if allowed else 0):
        missed = (i for i in calls if not response.matches(m, i))
        if response.id(m) not in near and len([*islice(missed, allowed + 1)]) <= allowed:
            near.add(response.id(m))
    # If few calls have another head_dim, many fixed numbers are nearly right. Only the sweep tells.
    return (
        [Candidate(next(iter(near)))]
        if len(near) == 1 and near.isdisjoint(of_one_number(response.recording))
        else []
    )


def explain_by_kind(response: Response) -> Sequence[Candidate]:
    """Return the only misconception that explains the response if sizes in messages may differ.

    One mistake written in two ways raises with two messages. Exceptions alone are too little
    evidence.
    """
    is_answered = any(
        observation.reply.raised is None for observation in response.syndrome.values()
    )
    faults = smallest_cover(replace(response, by_kind=True)) if is_answered else ()
    return faults if len(faults) == 1 and not faults[0].alternatives else ()


def smallest_cover(response: Response, calls: Set[int] | None = None) -> Sequence[Candidate]:
    """Return mutants that together explain the syndrome, or its part in `calls`, or none.

    This is a greedy set cover: the mutant that explains most calls comes first. Only mutants that
    are consistent with the response take part. If some call remains unexplained, return none.
    """
    syndrome = {i: e for i, e in response.syndrome.items() if calls is None or i in calls}
    impossible = {WRONG_AXIS} if has_foreign_size(syndrome.values()) else set[str]()
    explains, unknown = dict[int, frozenset[int]](), dict[int, int]()
    for m in range(len(response.recording.mutants)):
        if response.id(m) not in impossible and response.is_consistent(m):
            explained = frozenset(i for i in syndrome if response.explains(m, i))
            if not all(response.is_nondeterministic(m, i) for i in explained):
                explains[m] = explained
                unknown[m] = sum(response.is_nondeterministic(m, i) for i in response.calls)
    # a parametric mutant can imitate a mutant of another misconception, which is preferred
    by_number = {curve.id for curve in response.recording.sweeps}
    unexplained, faults = set(syndrome), list[Candidate]()
    while unexplained:
        best = max(
            explains,
            key=lambda m: (
                len(explains[m] & unexplained),
                -unknown[m],
                response.id(m) not in by_number,
            ),
            default=None,
        )
        if best is None or not explains[best] & unexplained:
            return []
        same = dict.fromkeys(response.id(m) for m in explains if explains[m] == explains[best])
        faults.append(
            Candidate(response.id(best), tuple(id_ for id_ in same if id_ != response.id(best)))
        )
        unexplained -= explains[best]
    only_raises = all(comparison.reply.raised for comparison in syndrome.values())
    functions = {target_of(observation.call) for observation in syndrome.values()}
    answers = (response.written[i] for i in response.calls & response.written.keys())
    is_answered = any(e.actual.raised is None and target_of(e.call) in functions for e in answers)
    if only_raises and (
        not is_answered or any(len(fault.alternatives) > MAX_ALTERNATIVES for fault in faults)
    ):
        return []  # if every call raises, the exception shows where the code stops, not why
    return faults


# A polynomial through so many recorded points interpolates the step between the middle two.
NODES = 6
SEGMENTS = 32  # straight segments of the curve in such a step
# Relative to an answer's norm. Rounding, sixteen bits and interpolation leave a distance; the
# largest one that was measured is 1e-4.
CLOSE = 1.5e-4
VISIBLE = 0.05  # a call determines the number if such a change of its logarithm can be seen
APART = 0.05  # the right numbers of two calls vary if their logarithms differ by more than this


def on_a_curve(response: Response, *, listed: bool = False) -> list[Candidate]:
    """Return the first parametric mutant that explains the whole syndrome, or none.

    One number must explain it, and several calls must determine that number. If each call has a
    right number, such as 1/√head_dim, it must not be the same in all of these calls. Otherwise the
    attempt's number may depend on a property that they share.

    Args:
        response: the response.
        listed: whether a number that a mutant of the bank has is accepted as well. By default it is
            not, because the replies of that mutant to all other calls are known. If it is accepted,
            the right number must be known to vary: if every call has the same head_dim, all large
            numbers give the same replies.
    """
    for curve in response.recording.sweeps:
        if not _explains(curve, response, must_vary=listed):
            continue
        calls = [i for i in curve.calls if i in response.calls and i in response.written]
        mutants = range(len(response.recording.mutants))
        if listed or not any(_matches_all(response, m, calls) for m in mutants):
            return [Candidate(curve.id)]
    return []


def _matches_all(response: Response, mutant: int, calls: Iterable[int]) -> bool:
    return all(response.matches(mutant, i) for i in calls)


@lru_cache(maxsize=16)
def of_one_number(recording: FaultDictionary) -> Set[str]:
    """Return the misconceptions of a fixed number, although the right one varies between calls.

    Only a sweep can prove them.
    """
    ids = set[str]()
    for curve in recording.sweeps:
        replies = map(recording.expected_reply, curve.calls)
        if _vary([_number(curve, position, reply) for position, reply in enumerate(replies)]):
            ids.add(curve.id)
    return ids


def _explains(curve: Sweep, response: Response, *, must_vary: bool) -> bool:
    syndrome, calls = response.syndrome.keys(), response.calls & response.written.keys()
    observations = {
        position: response.written[i] for position, i in enumerate(curve.calls) if i in calls
    }
    structures = (
        (
            response.structure(curve.calls[k], e.actual),
            response.structure(curve.calls[k], e.expected),
        )
        for k, e in observations.items()
    )
    if (
        not syndrome <= curve.detected_in
        or syndrome.isdisjoint(curve.calls)
        or any(actual != expected for actual, expected in structures)
    ):
        return False
    observed_calls = [curve.calls[position] for position in observations]
    other_mutants = (
        m for m in range(len(response.recording.mutants)) if response.id(m) != curve.id
    )
    if any(_matches_all(response, m, observed_calls) for m in other_mutants):
        return False  # the attempt has another misconception
    paths = {
        position: _path(curve, position, observation.actual)
        for position, observation in observations.items()
    }
    distance, segment, _ = _nearest([*paths.values()])
    telling = [k for k, path in paths.items() if path.determines_number(curve, segment)]
    varies = _vary([_number(curve, k, observations[k].expected) for k in telling])
    return (
        distance <= CLOSE
        and len(telling) > 1
        and (varies is True or (varies is None and not must_vary))
    )


def _vary(numbers: Sequence[float | None]) -> bool | None:
    """Return whether the right numbers of some calls differ, or None if fewer than two are known.

    Args:
        numbers: for each call the logarithm of the right number, or None if it is not known.
    """
    known_numbers = [number for number in numbers if number is not None]
    return max(known_numbers) - min(known_numbers) > APART if len(known_numbers) > 1 else None


def _number(curve: Sweep, position: int, reply: ReplyFingerprint) -> float | None:
    path = _path(curve, position, reply)
    distance, segment, along = _nearest([path])
    return (
        (segment + along) / SEGMENTS * curve.step
        if distance <= CLOSE and path.determines_number(curve, segment)
        else None
    )


class _Path(NamedTuple):
    """The sweep of one call as a path of straight segments, and an attempt's reply as a point.

    Attributes:
        start: (segments, N), the projections at the start of each segment.
        move: (segments, N), how they change along it.
        point: (N,), the projections of the attempt's reply. All three are relative to its norm.
    """

    start: Tensor
    move: Tensor
    point: Tensor

    def determines_number(self, curve: Sweep, segment: int) -> bool:
        """Return whether the reply changes enough in this segment to determine the number."""
        return float(self.move[segment].abs().max()) * SEGMENTS * VISIBLE >= CLOSE * curve.step


def _path(curve: Sweep, position: int, reply: ReplyFingerprint) -> _Path:
    """Return the sweep of one call, and a reply as a point beside it.

    In steps in which the recorded replies change their form, the path stays at the reply, so that
    the call neither supports nor excludes a number there. If the reply has another form itself, the
    path stays at it in each step of which a recorded reply has another form, and is infinitely far
    away in all others.
    """
    around = curve.answers[position].unfold(0, NODES, 1)  # (steps, N, NODES)
    is_other = around.isnan().any(1)
    if form_of(reply) == curve.forms[position]:
        norms = torch.tensor(
            [max(o.norm, SMALLEST) for o in reply.outputs for _ in o.projections]
        ).double()
        point = torch.tensor(numbers_of(reply), dtype=torch.float64) / norms
        changes = (is_other.any(1) & ~is_other.all(1))[:, None, None]
        points = torch.where(
            changes, point, torch.einsum("snk,pk->spn", around, _weights()) / norms
        )
    else:
        point = torch.zeros_like(around[0, :, 0])
        points = torch.where(is_other.any(1), 0.0, torch.inf)[:, None, None].expand(
            -1, SEGMENTS + 1, len(point)
        )
    return _Path(points[:, :-1].flatten(0, 1), points.diff(dim=1).flatten(0, 1), point)


def _nearest(paths: Sequence[_Path]) -> tuple[float, int, float]:
    """Return the distance from all points to the paths, its segment, and the position in that.

    The distance is the largest difference over all calls, which share one number. A segment in
    which only one of several calls moves is excluded: for the other calls the sweep has no reply of
    this form there.
    """
    start = torch.cat([path.start for path in paths], 1)
    move = torch.cat([path.move for path in paths], 1)
    gap = torch.cat([path.point for path in paths]) - start
    along = (
        ((gap * move).sum(1) / (move * move).sum(1).clamp_min(1e-300))
        .nan_to_num(0.0)
        .clamp(0.0, 1.0)
    )
    distances = (gap - along[:, None] * move).abs().amax(1).nan_to_num(torch.inf)
    moving = torch.stack([path.move.abs().amax(1) > 0 for path in paths]).sum(0)
    distances = distances.masked_fill(moving < min(2, len(paths)), torch.inf)
    # Take the segment with the least movement among those that are equally near. If the replies do
    # not change any more, an earlier segment in which they still change may be as near.
    least = (
        move.abs()
        .amax(1)
        .masked_fill(distances > distances.min() + CLOSE / 100, torch.inf)
        .nan_to_num(torch.inf)
    )
    segment = int(least.argmin())
    return float(distances[segment]), segment, float(along[segment])


@cache
def _weights() -> Tensor:
    """Return (SEGMENTS + 1, NODES): the Lagrange weights of points between the middle two nodes."""
    t = torch.linspace(0.0, 1.0, SEGMENTS + 1, dtype=torch.float64)
    nodes = [node + 1.0 - NODES // 2 for node in range(NODES)]
    basis = []
    for node in nodes:
        factors = [
            (t - other_node) / (node - other_node) for other_node in nodes if other_node != node
        ]
        basis.append(torch.stack(factors).prod(0))
    return torch.stack(basis, 1)
