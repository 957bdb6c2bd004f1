"""The rules that explain a syndrome by mutants, pairs of mutants, or parametric mutants.

A sweep has the replies of one parametric mutant to a few calls, for many values of its number. The
replies are a curve through the space of all projections, along the logarithm of the number. An
attempt is a point there. It has the mistake of the parametric mutant if the point lies on the
curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from ..checks.runner import target_of
from .bank import Sweep, form_of, projections_of
from .evidence import misconceptions_of_parameters, without_extra_parameters
from .fault_dictionary import (
    Candidate,
    FaultDictionary,
    Response,
    evidence,
    explanation,
    wrong_replies,
)
from .fingerprint import SMALLEST, ReplyFingerprint
from .mutants_explaining_nondeterminism import explained_nondeterminism
from .observed_reply import ObservedReply
from .pairs_of_mutants import explaining_pair, made_pair
from .pass_fail_dictionary import WRONG_AXIS, has_foreign_size

# With fewer wrong calls, in one function or in all, too many pairs of mutants fit.
MIN_WRONG_IN_FUNCTION, MIN_WRONG = 6, 3
MAX_ALTERNATIVES = 1  # for a candidate that only exceptions support
# In edge cases of a mistake a mutant may miss one in 12 calls, and one in 6 wrong answers.
CALLS_PER_MISS, WRONG_PER_MISS = 12, 6


def mutants(response: Response) -> list[Candidate]:
    """Return mutants that together explain the whole syndrome, or one of its `reductions`."""
    return _of_first(smallest_cover, response.reductions)


def nondeterministic_mutants(response: Response) -> list[Candidate]:
    """Return candidates for an attempt that answers some calls in more than one way, or none.

    `explained_nondeterminism` must explain these calls, and mutants the wrong calls that it leaves.
    The candidates for the wrong calls come first.
    """
    explained_calls, ids = explained_nondeterminism(response)
    if not ids:
        return []
    remainder = response.without_calls(explained_calls)
    candidates = smallest_cover(remainder)
    if remainder.syndrome and not candidates:
        return []
    return [*(c for c in candidates if c.id not in ids), *map(Candidate, ids)]


def parametric_mutants(response: Response) -> list[Candidate]:
    """Return a parametric mutant that explains the syndrome, or one of its `reductions`."""
    return _of_first(on_a_sweep, response.reductions)


def recorded_pairs(response: Response) -> list[Candidate]:
    """Return two mutants that together explain the syndrome, or one of its `reductions`.

    See `explaining_pair`, which may add a third mutant or return only one. At least MIN_WRONG calls
    must be wrong.
    """
    responses = (r for r in response.reductions if len(r.syndrome) >= MIN_WRONG)
    return _of_first(lambda r: explaining_pair(r, smallest_cover), responses)


def explain(response: Response, *, tries_pairs: bool = True) -> list[Candidate]:
    """Return the candidates of the first of four rules that explains a part of a response, or none.

    The rules are `mutants`, `nondeterministic_mutants`, `parametric_mutants` and `recorded_pairs`.

    Args:
        response: the part of the response.
        tries_pairs: whether `recorded_pairs` is tried. It should not be if the calls are too few to
            tell a pair of mutants from a mistake that is not in the bank.
    """
    rules = mutants, nondeterministic_mutants, parametric_mutants, recorded_pairs
    tried = rules if tries_pairs else rules[:-1]
    return next(filter(None, (rule(response) for rule in tried)), [])


def near_matches(response: Response) -> list[Candidate]:
    """Return the only misconception that matches all but a few calls, or none.

    If an attempt and a mutant make the same mistake in different code, they may differ in edge
    cases, such as a size of 1 or a sum close to 0. The more calls and the more wrong answers there
    are, the more calls may differ. Exceptions do not count as answers: alone, they are too little
    evidence. None of the `fixed_number_misconceptions` is returned.
    """
    calls = sorted(response.calls & response.written.keys())
    wrong_answers = sum(e.reply.raised is None for e in response.syndrome.values())
    allowed = min(len(calls) // CALLS_PER_MISS, wrong_answers // WRONG_PER_MISS)
    if not allowed:
        return []
    near = set[str]()
    for m in response.mutants:
        missed = (i for i in calls if not response.matches(m, i))
        if len([*islice(missed, allowed + 1)]) <= allowed:  # stops early: comparing is slow
            near.add(response.id(m))
    # If few calls have another head_dim, many fixed numbers are nearly right. Only the sweep tells.
    if len(near) != 1 or not near.isdisjoint(fixed_number_misconceptions(response.recording)):
        return []
    return [*map(Candidate, near)]


def exceptions_of_one_kind(response: Response) -> list[Candidate]:
    """Return the one misconception that explains the response, ignoring sizes in messages, or none.

    If an attempt and a mutant make the same mistake in different code, the messages of their
    exceptions may name different sizes. Return none if the explanation needs several misconceptions
    or has alternatives. Return none also if all wrong calls raise: exceptions alone are too little
    evidence.
    """
    if all(observation.reply.raised for observation in response.syndrome.values()):
        return []
    candidates = smallest_cover(replace(response, by_kind=True))
    return candidates if len(candidates) == 1 and not candidates[0].alternatives else []


def other_parameters(response: Response) -> list[Candidate]:
    """Return the misconception that wrong parameters show, and candidates for the wrong values.

    The values are compared as though the extra parameters were not there. Return none if the
    parameters show no misconception.
    """
    names = misconceptions_of_parameters(response)
    if not names:
        return []
    observations = without_extra_parameters(response.written)
    syndrome = wrong_replies(response.recording, observations)
    values = explain(replace(response, written=observations, syndrome=syndrome, _alike={}))
    return [*evidence("parameters" if values else "parameters alone", names), *values]


def single_functions(response: Response) -> list[Candidate]:
    """Return candidates for each function alone, for a response that nothing explains as a whole.

    A function takes part if two of its calls or more are wrong. Its candidates come from the first
    of these that explains its wrong calls:

    1. mutants that are consistent with all calls of the earlier functions;
    2. the rules of `explain`, for which only the right calls of the earlier functions count. They
       try recorded pairs if at least MIN_WRONG_IN_FUNCTION calls are wrong.

    A sweep must confirm a candidate with one of the `fixed_number_misconceptions`. A misconception
    is returned once, although several functions may show it.
    """
    explained: dict[str, Candidate] = {}
    for scope in _function_parts(response):
        if len(scope.calls & response.syndrome.keys()) < 2:  # one wrong call is too little evidence
            continue
        candidates = smallest_cover(response.subset(scope.calls | scope.earlier), scope.calls)
        if not candidates:
            is_enough = len(scope.response.syndrome) >= MIN_WRONG_IN_FUNCTION
            candidates = explain(scope.response, tries_pairs=is_enough)
        for candidate in candidates:
            # If all calls have the same head_dim, some fixed number imitates many mistakes.
            fixed_numbers = fixed_number_misconceptions(response.recording)
            if not fixed_numbers.isdisjoint(candidate.ids) and not on_a_sweep(
                response.subset(scope.calls), accepts_recorded=True
            ):
                continue
            explained.setdefault(candidate.id, candidate)
    return [*explained.values()]


def exceptions_before_answers(response: Response) -> list[Candidate]:
    """Return one candidate for all calls that raise, and another for all wrong answers.

    They explain the response or one of its `reductions`.
    """
    return _of_first(_stop_and_answer, response.reductions)


def _stop_and_answer(response: Response) -> list[Candidate]:
    """Return one candidate for the exceptions and one for the wrong answers, or none.

    Each must be the only one for its calls. Their misconceptions and alternatives must differ.
    """
    stopped = {i for i, e in response.syndrome.items() if e.actual.raised is not None}
    answered = response.syndrome.keys() - stopped
    if stopped and len(answered) > 1:  # one wrong answer is too little evidence
        for_stopped = smallest_cover(response.without_calls(answered))
        for_answered = smallest_cover(response.without_calls(stopped))
        match for_stopped, for_answered:
            case [of_stopped], [of_answered] if {*of_stopped.ids}.isdisjoint(of_answered.ids):
                return [of_stopped, of_answered]
    return []


def combined_pairs(response: Response) -> list[Candidate]:
    """Return two mutants that, combined in one program, reply as the attempt does.

    If no pair fits all functions, return a pair that fits one function with enough wrong calls.
    The whole response is tried first, then each function with at least MIN_WRONG_IN_FUNCTION wrong
    calls. Return none if the attempt's parameters differ: then no pair replies as it does. Return
    none on a student's machine, which has no mutants.
    """
    bank = response.bank
    if bank is None or response.shown_by("parameters alone"):
        return []
    responses = [*response.reductions]
    for scope in _function_parts(response):
        if len(scope.response.syndrome) >= MIN_WRONG_IN_FUNCTION:
            responses += scope.response.reductions
    return _of_first(lambda r: made_pair(r, bank), responses)


def _of_first(
    explains: Callable[[Response], list[Candidate]], responses: Iterable[Response]
) -> list[Candidate]:
    """Return the candidates that explain the first of these responses that has any, or none."""
    return next(filter(None, map(explains, responses)), [])


class _FunctionPart(NamedTuple):
    """The part of a response that shows one function. A function may call those before it.

    Attributes:
        calls: the calls of the function.
        earlier: the calls of the functions before it that return an output.
        response: the response to `calls` and the right ones of `earlier`.
    """

    calls: Set[int]
    earlier: Set[int]
    response: Response


def _function_parts(response: Response) -> Iterator[_FunctionPart]:
    """Yield for each function the part of the response that is matched on its own.

    The part has the calls of the function, and the right calls of the functions defined before it:
    a mutant must not contradict these. The functions have the order of the recorded calls, which is
    the order of their definitions. Yield nothing if there is only one function.
    """
    targets = [target_of(call) for call in response.recording.calls]
    functions = dict.fromkeys(targets)
    if len(functions) == 1:
        return
    answered = {
        i for i, e in response.written.items() if e.reply.outputs and e.reply.raised is None
    }
    earlier = set[int]()
    for function in functions:
        calls = {i for i in response.calls if targets[i] == function}
        right_earlier = earlier - response.syndrome.keys()
        yield _FunctionPart(calls, earlier, response.subset(calls | right_earlier))
        earlier = earlier | (calls & answered)


def smallest_cover(response: Response, calls: Set[int] | None = None) -> list[Candidate]:
    """Return mutants that together explain the syndrome, or its part in `calls`, or none.

    This is a greedy set cover: in each step the mutant that explains most of the unexplained calls
    is taken. The misconception of this mutant is a candidate, and mutants that explain exactly the
    same calls give its alternatives. Only mutants that are consistent with the response take part.
    If some call remains unexplained, or if the evidence is too little (`_is_enough_evidence`),
    return none.
    """
    syndrome = {i: e for i, e in response.syndrome.items() if calls is None or i in calls}
    explained = _calls_by_mutant(response, syndrome)
    unexplained, candidates = set(syndrome), list[Candidate]()
    parametric_ids = {sweep.id for sweep in response.recording.sweeps}

    def rank(mutant: int) -> tuple[int, int, bool]:
        """Rank mutants: explained calls, then informative replies, then that it has no number."""
        count = len(explained[mutant] & unexplained)
        unknown = sum(response.is_uninformative(mutant, i) for i in response.calls)
        # On a tie, prefer an ordinary mutant: a parametric one can imitate it.
        return count, -unknown, response.id(mutant) not in parametric_ids

    while unexplained:
        best = max(explained, key=rank, default=None)
        if best is None or not explained[best] & unexplained:
            return []
        same = [m for m in explained if explained[m] == explained[best]]
        candidates.append(explanation(map(response.id, [best, *same])))
        unexplained -= explained[best]
    return candidates if _is_enough_evidence(response, syndrome, candidates) else []


def _calls_by_mutant(
    response: Response, syndrome: Mapping[int, ObservedReply]
) -> dict[int, frozenset[int]]:
    """Return for each consistent mutant the calls of the syndrome that it explains.

    A mutant has an entry if it explains at least one call by an informative reply. A mutant that
    mixes up axes (WRONG_AXIS) has none if an error has a size that the call has not.
    """
    impossible = {WRONG_AXIS} if has_foreign_size(syndrome.values()) else set[str]()
    explained = dict[int, frozenset[int]]()
    for m in response.mutants:
        if response.id(m) not in impossible and response.is_consistent(m):
            calls = frozenset(i for i in syndrome if response.explains(m, i))
            if not all(response.is_uninformative(m, i) for i in calls):
                explained[m] = calls
    return explained


def _is_enough_evidence(
    response: Response, syndrome: Mapping[int, ObservedReply], candidates: Iterable[Candidate]
) -> bool:
    """Return whether the wrong calls are enough evidence for these candidates.

    They are if some wrong call is answered. If all wrong calls raise, they show only where the code
    stops: then one of their functions must answer another call, and no candidate may have more than
    MAX_ALTERNATIVES.
    """
    if not all(observation.reply.raised for observation in syndrome.values()):
        return True
    functions = {observation.function for observation in syndrome.values()}
    answers = (response.written[i] for i in response.calls & response.written.keys())
    is_answered = any(e.actual.raised is None and e.function in functions for e in answers)
    return is_answered and all(len(c.alternatives) <= MAX_ALTERNATIVES for c in candidates)


# A polynomial through so many recorded points interpolates the step between the middle two.
NODES = 6
SEGMENTS = 32  # straight segments of the curve in such a step
# Relative to an answer's norm. Rounding, sixteen bits and interpolation leave a distance; the
# largest one that was measured is 1e-4.
CLOSE = 1.5e-4
EQUALLY_NEAR = CLOSE / 100  # two distances differ by rounding only
VISIBLE = 0.05  # a call determines the number if such a change of its logarithm can be seen
APART = 0.05  # the right numbers of two calls vary if their logarithms differ by more than this


def on_a_sweep(response: Response, *, accepts_recorded: bool = False) -> list[Candidate]:
    """Return the first parametric mutant that explains the whole syndrome, or none.

    One number must explain it, and two calls at least must determine that number. If the right
    numbers of these calls are known, such as 1/√head_dim, they must not be all the same. Otherwise
    the attempt's number may depend on a property that the calls share.

    Args:
        response: the response.
        accepts_recorded: whether a recorded mutant of the same misconception may reply as the
            attempt does. It may not by default, because `mutants` has already compared that mutant
            in all calls. If it may, the right numbers must be known to differ: if they are all
            the same, a fixed number imitates many mistakes.
    """
    for sweep in response.recording.sweeps:
        if _explains(sweep, response, accepts_recorded):
            return [Candidate(sweep.id)]
    return []


def _matches_all(response: Response, mutant: int, calls: Iterable[int]) -> bool:
    return all(response.matches(mutant, i) for i in calls)


@lru_cache(maxsize=16)
def fixed_number_misconceptions(recording: FaultDictionary) -> Set[str]:
    """Return the misconceptions that use one number where the right number varies between calls.

    Rules that compare only a part of the calls, or only symptoms, do not name them: if the right
    number is the same in these calls, too much fits. `on_a_sweep` tests whether the number varies.
    """
    ids = set[str]()
    for sweep in recording.sweeps:
        if _vary(_number(sweep, i, recording.expected_reply(i)) for i in sweep.calls):
            ids.add(sweep.id)
    return ids


def _explains(sweep: Sweep, response: Response, accepts_recorded: bool) -> bool:
    """Return whether a parametric mutant with one number explains the whole syndrome.

    All of these must hold. Here, the sweep's calls are those to which the response has a reply.

    1. Each wrong call is one in which the mutant is wrong for at least one of its recorded numbers.
       At least one wrong call is a call of the sweep.
    2. The attempt's replies to the sweep's calls differ from the reference's in numbers only.
    3. No recorded mutant gives the attempt's replies to all the sweep's calls. With
       `accepts_recorded`, mutants of the sweep's own misconception are allowed to.
    4. With one number, the same for all the sweep's calls, the parametric mutant gives the
       attempt's replies. At least two of the calls determine this number.
    5. The right number is not the same in all calls that determine the number. If this is not
       known, the condition holds only without `accepts_recorded`.
    """
    # 1.
    syndrome, with_reply = response.syndrome.keys(), response.calls & response.written.keys()
    if not syndrome <= sweep.detected_in or syndrome.isdisjoint(sweep.calls):
        return False
    # 2.
    calls = [i for i in sweep.calls if i in with_reply]
    if not all(map(response.has_expected_structure, calls)):
        return False
    # 3.
    ids = {response.id(m) for m in response.mutants if _matches_all(response, m, calls)}
    if not ids <= ({sweep.id} if accepts_recorded else set()):
        return False
    # 4.
    paths = {i: _path(sweep, i, response.written[i].actual) for i in calls}
    nearest = _nearest_position([*paths.values()])
    determining = [i for i, path in paths.items() if path.determines_number(sweep, nearest.segment)]
    if nearest.distance > CLOSE or len(determining) < 2:
        return False
    # 5.
    varies = _vary(_number(sweep, i, response.written[i].expected) for i in determining)
    return not accepts_recorded if varies is None else varies


def _vary(numbers: Iterable[float | None]) -> bool | None:
    """Return whether the right numbers of some calls differ, or None if fewer than two are known.

    Args:
        numbers: for each call the logarithm of the right number, or None if it is not known.
    """
    known_numbers = [number for number in numbers if number is not None]
    if len(known_numbers) < 2:
        return None
    return max(known_numbers) - min(known_numbers) > APART


def _number(sweep: Sweep, call: int, reply: ReplyFingerprint) -> float | None:
    """Return the logarithm of the number that gives this reply, or None if no number does.

    It is relative to the first number of the sweep that has a path. Return None also if the reply
    changes too little with the number to determine it.
    """
    path = _path(sweep, call, reply)
    nearest = _nearest_position([path])
    if nearest.distance > CLOSE or not path.determines_number(sweep, nearest.segment):
        return None
    return (nearest.segment + nearest.along) / SEGMENTS * sweep.step


class _Path(NamedTuple):
    """The sweep of one call as a path of straight segments, and an attempt's reply as a point.

    Attributes:
        start: (segments, N), the projections at the start of each segment.
        move: (segments, N), how they change along it.
        point: (N,), the projections of the attempt's reply. All three are relative to the norms of
            its tensors.
    """

    start: Tensor
    move: Tensor
    point: Tensor

    def determines_number(self, sweep: Sweep, segment: int) -> bool:
        """Return whether the reply changes enough in this segment to determine the number."""
        return float(self.move[segment].abs().max()) * SEGMENTS * VISIBLE >= CLOSE * sweep.step


def _path(sweep: Sweep, call: int, reply: ReplyFingerprint) -> _Path:
    """Return the sweep of one call, and a reply as a point beside it.

    A step lies between the middle two of NODES neighbouring numbers, and has SEGMENTS segments. The
    path in a step depends on which replies have the form that is recorded for the call:

    1. The given reply has it, and so have all NODES recorded ones: the path interpolates these.
    2. The given reply has it, and only some recorded ones have it: the path stays at the given
       reply, so that the call neither supports nor excludes a number in this step.
    3. The given reply has it, and no recorded one has it: the path is NaN, which fits nothing.
    4. The given reply has another form, and so has a recorded one: the path stays at it.
    5. Only the given reply has another form: the path is infinitely far away.
    """
    position = sweep.calls.index(call)
    around = sweep.answers[position].unfold(0, NODES, 1)  # (steps, N, NODES)
    has_other_form = around.isnan().any(1)
    if form_of(reply) == sweep.forms[position]:
        norms = torch.tensor(
            [max(o.norm, SMALLEST) for o in reply.outputs for _ in o.projections]
        ).double()
        point = torch.tensor(projections_of(reply), dtype=torch.float64) / norms
        changes = (has_other_form.any(1) & ~has_other_form.all(1))[:, None, None]
        interpolated = torch.einsum("snk,pk->spn", around, _weights()) / norms
        points = torch.where(changes, point, interpolated)
    else:
        point = torch.zeros_like(around[0, :, 0])
        points = torch.where(has_other_form.any(1), 0.0, torch.inf)[:, None, None].expand(
            -1, SEGMENTS + 1, len(point)
        )
    return _Path(points[:, :-1].flatten(0, 1), points.diff(dim=1).flatten(0, 1), point)


class _Nearest(NamedTuple):
    """The position on the paths of several calls that is nearest to their points.

    Attributes:
        distance: the largest difference between a path and its point, or inf if all are excluded.
        segment: the index of the segment.
        along: the position in the segment, from 0 to 1.
    """

    distance: float
    segment: int
    along: float


def _nearest_position(paths: Sequence[_Path]) -> _Nearest:
    """Return the nearest position on the paths, the same one for all calls: they share one number.

    A segment in which fewer than two of several paths move is excluded: for the other calls the
    sweep has no reply of this form there.
    """
    start = torch.cat([path.start for path in paths], 1)
    move = torch.cat([path.move for path in paths], 1)
    gap = torch.cat([path.point for path in paths]) - start
    along = (
        ((gap * move).sum(1) / (move * move).sum(1).clamp_min(1e-300))  # no division by 0
        .nan_to_num(0.0)
        .clamp(0.0, 1.0)
    )
    distances = (gap - along[:, None] * move).abs().amax(1).nan_to_num(torch.inf)
    moving = torch.stack([path.move.abs().amax(1) > 0 for path in paths]).sum(0)
    distances = distances.masked_fill(moving < min(2, len(paths)), torch.inf)
    # Take the segment with the least movement among those that are equally near. If the replies do
    # not change any more, an earlier segment in which they still change may be as near.
    is_near = distances <= distances.min() + EQUALLY_NEAR
    movement = move.abs().amax(1).masked_fill(~is_near, torch.inf).nan_to_num(torch.inf)
    segment = int(movement.argmin())
    return _Nearest(float(distances[segment]), segment, float(along[segment]))


@cache
def _weights() -> Tensor:
    """Return (SEGMENTS + 1, NODES): the Lagrange weights of points between the middle two nodes."""
    points = torch.linspace(0.0, 1.0, SEGMENTS + 1, dtype=torch.float64)
    nodes = torch.arange(1 - NODES // 2, 1 + NODES // 2, dtype=torch.float64)
    # The weighted sum of the nodes' powers is the power of the point, for each exponent.
    node_powers, point_powers = torch.linalg.vander(nodes), torch.linalg.vander(points, N=NODES)
    weights: Tensor = torch.linalg.solve(node_powers, point_powers, left=False)
    return weights
