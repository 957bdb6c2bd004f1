"""Find two mutants that together explain a response which no single mutant explains."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import combinations

from torch import Tensor

from ..checks.runner import LocalRunner, reply_in_default_dtype
from .bank import Bank
from .compact_storage import ReplySketch, sketch_numbers, sketch_reply
from .fault_dictionary import Candidate, FaultDictionary, Response, bits_of, explanation
from .fingerprint import ReplyFingerprint, comparable_fingerprint, without_unexpected_tables
from .observed_reply import ObservedReply, summarise_copies

# the most calls that detect one mutant of a pair and to which the attempt replies differently
MAX_DOUBTS = 4
# Relative to an answer's norm. At a smaller distance from the reference's answer, rounding matters.
VISIBLE = 1e-3
CLOSE = 0.01  # relative to that distance
MAX_ALTERNATIVES = 2  # a second mistake with more alternatives is not named
MAX_COMBINED = 16  # pairs that are combined and run for one attempt

Pair = tuple[int, int]


def explaining_pair(
    response: Response, cover: Callable[[Response], list[Candidate]]
) -> list[Candidate]:
    """Return the two misconceptions that together explain the whole syndrome, or none.

    If too many misconceptions fit as one of the two, only the other one is returned. If no recorded
    pair fits, the two may also be one mutant with the attempt's numbers, and another one with the
    remaining fields of the replies.

    If a call detects both mutants, the reply of both together is recorded for one such call, and it
    must be the attempt's. On calls that detect only one of the two, that mutant must match the
    attempt, except for a few calls: a mistake that alone changes nothing can become visible through
    the other one. Calls that detect neither may show a third mistake, which `cover` has to explain.
    """
    candidates = dict[Set[int], list[tuple[int, Pair]]]()
    for pair in _pairs_with_this_reply(response):
        doubts, unexplained = _doubts(response, pair)
        if doubts is None or doubts > MAX_DOUBTS:
            continue
        if 2 * len(unexplained) <= len(response.syndrome):
            candidates.setdefault(unexplained, []).append((doubts, pair))
    for unexplained in sorted(candidates, key=len):
        right_calls = response.calls - response.syndrome.keys()
        third = cover(response.subset(unexplained | right_calls))
        if third or not unexplained:
            ranked = sorted(candidates[unexplained])
            fewest_doubts, _ = ranked[0]
            likely = [pair for doubts, pair in ranked if doubts <= fewest_doubts + 1]
            two = _certain_candidates(response, likely)
            ids = {candidate.id for candidate in two}
            return [*two, *(candidate for candidate in third if candidate.id not in ids)]
    if all(observation.actual.raised for observation in response.syndrome.values()):
        return []
    return [_candidate(response, m) for m in _numbers_and_fields(response)]


def made_pair(response: Response, bank: Bank) -> list[Candidate]:
    """Return two misconceptions whose mutants, combined in one program, reply as the attempt does.

    The combinations are made and run here. On calls that detect only one of the two mutants, that
    mutant must match the attempt. At least one call must detect both; otherwise two single
    candidates are enough.
    """
    for first, second in _likely_pairs(response):
        namespace = bank.combine(bank.mutants[first], bank.mutants[second])
        if namespace is None:
            continue
        if _replies_as_attempt(response, LocalRunner(namespace), (first, second)):
            return [_candidate(response, first), _candidate(response, second)]
    return []


def _likely_pairs(response: Response) -> list[Pair]:
    """Return the pairs of mutants that may explain the syndrome together, the likeliest first.

    A pair is likely if its mutants alone explain many calls. Among equally likely pairs, those come
    first in which the attempt seldom replies as one mutant alone on calls that detect both.
    """
    # The first mutant with a misconception and these replies is enough.
    calls, distinct = sorted(response.calls), dict[tuple[str, tuple[int | None, ...]], int]()
    for m, mutant in enumerate(response.recording.mutants):
        distinct.setdefault((mutant.id, tuple(mutant.answers[i] for i in calls)), m)
    wrong_bits, call_bits = bits_of(response.syndrome), bits_of(calls)
    detections = dict[int, int]()  # sets of calls as bits
    for m in distinct.values():
        bits = response.recording.detected_in[m] & call_bits
        if bits and not bits & ~wrong_bits:
            detections[m] = bits

    @cache
    def explained_bits(mutant: int) -> int:
        detecting = (i for i in calls if not response.survives(mutant, i))
        return bits_of(i for i in detecting if response.explains(mutant, i))

    # Many mistakes end in the same exception, so a call that detects both must be answered.
    answered_bits = bits_of(i for i, e in response.syndrome.items() if e.actual.raised is None)
    candidates = []
    for a, b in combinations(detections, 2):
        both, either = detections[a] & detections[b], detections[a] | detections[b]
        if either != wrong_bits or not both & answered_bits or response.id(a) == response.id(b):
            continue
        explained = explained_bits(a) | explained_bits(b)
        # A call that detects only one mutant must be explained by it.
        if not either & ~both & ~explained:
            candidates.append((-explained.bit_count(), (explained & both).bit_count(), (a, b)))
    return [pair for *_, pair in sorted(candidates)[:MAX_COMBINED]]


def _replies_as_attempt(response: Response, runner: LocalRunner, pair: Pair) -> bool:
    """Return whether a combined program replies to all calls as the attempt does.

    Calls to which one of the two mutants has an uninformative reply are left out. Wrong calls are
    tried first, because most programs fail in them.
    """
    calls = response.calls & response.written.keys()
    for i in sorted(calls, key=lambda i: (i not in response.syndrome, i)):
        if any(response.is_uninformative(m, i) for m in pair):
            continue
        call, expected = response.recording.calls[i], response.recording.expected_reply(i)
        actual = response.written[i].actual
        reply = reply_in_default_dtype(runner, call, runner.execute(call))
        fingerprint = comparable_fingerprint(expected, call, summarise_copies(call, reply))
        if not fingerprint.agrees(actual, response.recording.facets[i]):
            return False
    return True


def _certain_candidates(response: Response, pairs: Sequence[Pair]) -> list[Candidate]:
    """Return the misconceptions of the first pair that are certain enough to be named.

    One that all pairs share is certain. The other one is named if it has few alternatives, which
    are the misconceptions of the other pairs. If the pairs share none, return none.
    """
    id_sets = list(dict.fromkeys(frozenset(map(response.id, pair)) for pair in pairs))
    shared = frozenset[str].intersection(*id_sets)
    unshared = list(dict.fromkeys(id_ for ids in id_sets for id_ in sorted(ids - shared)))
    candidates = list[Candidate]()
    for m in pairs[0] if shared else ():
        alternatives = [] if response.id(m) in shared else unshared
        if len(alternatives) <= MAX_ALTERNATIVES + 1:
            candidates.append(_candidate(response, m, alternatives))
    return candidates


def _candidate(response: Response, mutant: int, ids: Iterable[str] = ()) -> Candidate:
    """Return a mutant's misconception as a candidate.

    Its alternatives are these ids, and those of mutants with the same replies.
    """
    recorded = response.recording.mutants[mutant]
    same = [m.id for m in response.recording.mutants if m.answers == recorded.answers]
    return explanation([recorded.id, *ids, *same])


def _pairs_with_this_reply(response: Response) -> Iterator[Pair]:
    """Yield pairs whose recorded reply is the attempt's, if no mutant alone gives that reply."""
    pairs = response.recording.pairs
    # replies without numbers are left out: many pairs end in the same exception
    pairs = pairs.at(pairs.answers.numbers.abs().sum(1) > 0)
    for index in pairs.probe.unique().tolist():
        observation = response.syndrome.get(index)
        if observation is None or not _has_weights(observation.actual, observation.expected):
            continue
        if _return_alike(observation.actual, observation.expected):
            continue
        probed = pairs.at(pairs.probe == index)
        probed = probed.at(_are_this_reply(probed.answers, observation))
        recorded_replies = response.recording.replies[index]
        if not len(probed.first) or any(
            _return_alike(reply, observation.actual) for reply in recorded_replies
        ):
            continue
        for pair in zip(probed.first.tolist(), probed.second.tolist(), strict=True):
            mutants = (response.recording.mutants[m] for m in pair)
            answers = [response.recording.answer(mutant, index) for mutant in mutants]
            has_weights = all(a and _has_weights(a, observation.expected) for a in answers)
            if has_weights and response.id(pair[0]) != response.id(pair[1]):
                yield pair


def _are_this_reply(answers: ReplySketch, observation: ObservedReply) -> Tensor:
    """Return (N,) bool: which of these recorded replies of pairs are the attempt's.

    The distance between a pair's reply and the attempt's is relative to the distance between the
    attempt's and the reference's: if mistakes change the numbers little, all replies are near each
    other. If the second distance is so small that rounding matters, no reply agrees.
    """
    sketch = sketch_reply(without_unexpected_tables(observation.reply, observation.expected))
    expected_numbers = sketch_numbers(
        [output.projections for output in observation.expected.outputs if output.projections]
    )
    apart = (sketch.numbers - expected_numbers).abs().max()
    near = ((answers.numbers - sketch.numbers).abs() <= CLOSE * apart).all(1)
    return answers.agree_with(sketch) & near & (apart >= VISIBLE * sketch.scales[0])


def _return_alike(a: ReplyFingerprint, b: ReplyFingerprint) -> bool:
    """Return whether both return the same tensors.

    Gradients are not compared, because the dictionary has none for pairs.
    """
    return bool(a.outputs and b.outputs) and a.agrees(b, ("outputs",))


def _has_weights(fingerprint: ReplyFingerprint, expected: ReplyFingerprint) -> bool:
    """Return whether a module has most of the parameters that the call gives it.

    With other parameters its replies are no evidence.
    """
    keys = expected.parameters.keys()
    return 2 * len(keys & fingerprint.parameters.keys()) >= len(keys)


def _doubts(response: Response, pair: Pair) -> tuple[int | None, Set[int]]:
    """Return the number of calls that speak against a pair, and the unexplained wrong calls.

    A call speaks against the pair if only one of the two mutants changes it, and the attempt
    answers it in another way than that mutant. The count is None if the attempt is right on a call
    that one of the two changes. Two mutants could cancel each other there, but then neither is
    seen, and a mistake that is not in the bank explains the replies as well.
    """
    doubts, unexplained = 0, set[int]()
    for index in response.calls:
        if any(response.is_uninformative(m, index) for m in pair):
            continue
        detected = [m for m in pair if not response.survives(m, index)]
        if detected and index not in response.syndrome:
            return None, unexplained
        if not detected and index in response.syndrome:
            unexplained.add(index)
        if len(detected) == 1 and not response.explains(detected[0], index):
            doubts += 1
    return doubts, frozenset(unexplained)


def _numbers_and_fields(response: Response) -> Sequence[int]:
    """Return two mutants, one with the attempt's numbers, the other with the remaining fields.

    The second one has the reference's numbers. In each remaining field the first one is as the
    attempt or as the reference. An example is a wrong scale together with a cut gradient, a changed
    argument or a fixed dtype. Return an empty tuple if there are no such mutants.
    """
    recording = response.recording
    expected_replies = {i: recording.expected_reply(i) for i in sorted(response.calls)}
    actual_replies = expected_replies | {i: e.actual for i, e in response.syndrome.items()}

    def structures(replies: Mapping[int, ReplyFingerprint]) -> ItemsView[int, tuple[object, ...]]:
        return {i: response.structure(i, reply) for i, reply in replies.items()}.items()

    def mutant_structures(mutant: int) -> ItemsView[int, tuple[object, ...]]:
        return structures(recording.answers(mutant, expected_replies))

    expected, actual = structures(expected_replies), structures(actual_replies)
    with_right_numbers = _with_numbers_of(recording, expected_replies)
    with_wrong_numbers = [
        m
        for m in _with_numbers_of(recording, actual_replies)
        if m not in with_right_numbers and mutant_structures(m) <= expected | actual
    ]
    for second in with_right_numbers if with_wrong_numbers else ():
        fields = mutant_structures(second)
        if fields <= actual and not fields <= expected:
            candidates = (m for m in with_wrong_numbers if response.id(m) != response.id(second))
            first_mutant = next(candidates, None)
            return () if first_mutant is None else (first_mutant, second)
    return ()


def _with_numbers_of(
    recording: FaultDictionary, replies: Mapping[int, ReplyFingerprint]
) -> list[int]:
    """Return the mutants that return these numbers on each call that both answer.

    Both must answer most of the calls.
    """

    @cache
    def agrees(call: int, index: int) -> bool:
        reply = recording.replies[call][index]
        return bool(reply.raised) or reply.agrees(replies[call], ("outputs",))

    answered, matches = [i for i, reply in replies.items() if not reply.raised], list[int]()
    for m, mutant in enumerate(recording.mutants):
        indices = ((i, index) for i in answered if (index := mutant.answers[i]) is not None)
        if all(agrees(i, index) for i, index in indices):
            answers = recording.answers(m, answered).values()
            if 2 * sum(not answer.raised for answer in answers) > len(replies):
                matches.append(m)
    return matches
