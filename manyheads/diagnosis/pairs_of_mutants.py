"""Find two mutants that together explain a response which no single mutant explains.

`explaining_pair` compares the attempt's replies with recorded replies of pairs, in one call for
each pair. `made_pair` combines likely pairs in one program and runs it, which needs the mutants
themselves. A student's machine does not have these.
"""

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

# the largest number of doubts: calls that detect one mutant of a pair, and to which the attempt
# replies in another way than this mutant
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

    1. The reply of both mutants together is recorded for one call that detects both. It must be the
       attempt's.
    2. No call that the attempt answers rightly may detect a mutant. On calls that detect only one
       of the two, that mutant must match the attempt. A call where it does not is a doubt.
       MAX_DOUBTS are allowed: a mistake that alone changes nothing can become visible through the
       other one.
    3. Wrong calls that detect neither mutant may show a third mistake, which is returned as well.
       `cover` has to explain these calls, which are at most half of the syndrome.
    4. Pairs that leave the fewest wrong calls to a third mistake are preferred; of these, those
       with at most one doubt more than the fewest. If several pairs remain, only the misconceptions
       that are certain enough are returned (`_certain_candidates`).
    5. If no recorded pair fits, and the attempt answers some wrong call, the two may be one mutant
       with the attempt's numbers and one with its other reply fields (`_numbers_and_fields`).
    """
    # pairs and their doubts, by the wrong calls that they leave to a third mistake
    pairs_by_unexplained = dict[Set[int], list[tuple[int, Pair]]]()
    for pair in _pairs_with_this_reply(response):
        doubts, unexplained = _doubts(response, pair)
        if doubts is None or doubts > MAX_DOUBTS:  # None: a right call detects a mutant
            continue
        if 2 * len(unexplained) <= len(response.syndrome):
            pairs_by_unexplained.setdefault(unexplained, []).append((doubts, pair))
    for unexplained in sorted(pairs_by_unexplained, key=len):
        right_calls = response.calls - response.syndrome.keys()
        third = cover(response.subset(unexplained | right_calls))
        if third or not unexplained:
            ranked = sorted(pairs_by_unexplained[unexplained])
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

    The likely pairs are combined and run here. Pairs that cannot be combined are skipped. Return
    none if no combination replies so.
    """
    for first, second in _likely_pairs(response):
        namespace = bank.combine(bank.mutants[first], bank.mutants[second])
        if namespace is None:
            continue
        if _replies_as_attempt(response, LocalRunner(namespace), (first, second)):
            return [_candidate(response, first), _candidate(response, second)]
    return []


def _likely_pairs(response: Response) -> list[Pair]:
    """Return at most MAX_COMBINED pairs of mutants that may explain the syndrome together.

    1. The calls that detect one of the two or both must be exactly the syndrome.
    2. The attempt must answer a call that detects both, without an exception. If no call detects
       both, two single candidates are enough.
    3. A call that detects only one of the two must be explained by that mutant alone.
    4. The misconceptions must differ.

    The pairs are sorted by the number of calls that one of the two mutants alone explains, largest
    first, and then by how many of these detect both, smallest first.
    """
    # Mutants with the same misconception and the same replies are tried once.
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
        detects_only_one = either & ~both
        if not detects_only_one & ~explained:
            candidates.append((-explained.bit_count(), (explained & both).bit_count(), (a, b)))
    return [pair for *_, pair in sorted(candidates)[:MAX_COMBINED]]


def _replies_as_attempt(response: Response, runner: LocalRunner, pair: Pair) -> bool:
    """Return whether a combined program replies to all calls as the attempt does.

    Calls to which one of the two mutants has an uninformative reply are skipped. Wrong calls are
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
        if not fingerprint.agrees(actual, response.recording.compared_fields[i]):
            return False
    return True


def _certain_candidates(response: Response, pairs: Sequence[Pair]) -> list[Candidate]:
    """Return the misconceptions of the first pair that are certain enough to be named.

    A misconception that all pairs share is certain. The other one of the first pair is named if it
    has at most MAX_ALTERNATIVES alternatives: the misconceptions that other pairs have in its
    place. If the pairs share no misconception, return none.
    """
    id_sets = list(dict.fromkeys(frozenset(map(response.id, pair)) for pair in pairs))
    shared = frozenset[str].intersection(*id_sets)
    unshared = list(dict.fromkeys(id_ for ids in id_sets for id_ in sorted(ids - shared)))
    candidates = list[Candidate]()
    for m in pairs[0] if shared else ():
        ids_matching_instead = [] if response.id(m) in shared else unshared
        if len(ids_matching_instead) <= 1 + MAX_ALTERNATIVES:  # its own id and the alternatives
            candidates.append(_candidate(response, m, ids_matching_instead))
    return candidates


def _candidate(response: Response, mutant: int, ids: Iterable[str] = ()) -> Candidate:
    """Return a mutant's misconception as an explanation.

    Its alternatives are `ids`, and the misconceptions of mutants with the same replies to all
    calls.
    """
    recorded = response.recording.mutants[mutant]
    same = [m.id for m in response.recording.mutants if m.answers == recorded.answers]
    return explanation([recorded.id, *ids, *same])


def _pairs_with_this_reply(response: Response) -> Iterator[Pair]:
    """Yield pairs of mutants whose recorded reply to a call, both together, is the attempt's.

    The two mutants have different misconceptions. The attempt's reply must be wrong, and no reply
    of the reference or of a single mutant to the call may have the same outputs. The module of the
    attempt and those of both mutants must have enough of the given parameters (`_has_weights`).
    """
    pairs = response.recording.pairs
    # only replies with numbers: many pairs end in the same exception
    pairs = pairs.rows_at(pairs.answers.numbers.abs().sum(1) > 0)
    for index in pairs.probe.unique().tolist():
        observation = response.syndrome.get(index)
        if observation is None or not _has_weights(observation.actual, observation.expected):
            continue
        if _return_alike(observation.actual, observation.expected):
            continue
        probed = pairs.rows_at(pairs.probe == index)
        probed = probed.rows_at(_agree_with_reply(probed.answers, observation))
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


def _agree_with_reply(answers: ReplySketch, observation: ObservedReply) -> Tensor:
    """Return (N,) bool: which of these recorded replies of pairs agree with the attempt's reply.

    A pair's reply agrees if its distance to the attempt's is at most CLOSE times the distance of
    the attempt's to the reference's: if mistakes change the numbers little, all replies are near
    each other. If the latter distance is so small that rounding matters, no reply agrees.
    """
    sketch = sketch_reply(without_unexpected_tables(observation.reply, observation.expected))
    expected_numbers = sketch_numbers(
        [output.projections for output in observation.expected.outputs if output.projections]
    )
    distance = (sketch.numbers - expected_numbers).abs().max()
    near = ((answers.numbers - sketch.numbers).abs() <= CLOSE * distance).all(1)
    scale = sketch.scales[0]  # the only row: this is the sketch of one reply
    return answers.agree_with(sketch) & near & (distance >= VISIBLE * scale)


def _return_alike(a: ReplyFingerprint, b: ReplyFingerprint) -> bool:
    """Return whether both return the same outputs, and at least one.

    Gradients are not compared, because the dictionary has none for pairs.
    """
    return bool(a.outputs and b.outputs) and a.agrees(b, ("outputs",))


def _has_weights(fingerprint: ReplyFingerprint, expected: ReplyFingerprint) -> bool:
    """Return whether a module has at least half of the parameters that the call gives it.

    With other parameters its replies are no evidence. Functions have none, so they always pass.
    """
    names = expected.parameters.keys()
    return 2 * len(names & fingerprint.parameters.keys()) >= len(names)


def _doubts(response: Response, pair: Pair) -> tuple[int | None, Set[int]]:
    """Return the number of doubts about a pair, and the unexplained wrong calls.

    A call is a doubt if it detects only one of the two mutants, and the attempt replies in another
    way than that mutant. A wrong call is unexplained if it detects neither. A call is skipped if
    one of the two mutants has an uninformative reply to it.

    The count is None, and the set is not complete, if a call that the attempt answers rightly
    detects a mutant. Two mutants could cancel each other there, but a mistake that is not in the
    bank explains the replies as well.
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


def _numbers_and_fields(response: Response) -> Pair | tuple[()]:
    """Return two mutants: one with the attempt's numbers, one with its other reply fields.

    Return an empty tuple if there are none. An example is a wrong scale together with a cut
    gradient, a changed argument or a fixed dtype. The structure of a reply is everything but its
    numbers (`Response.structure`). Random replies are not compared.

    1. The first mutant has the attempt's numbers, and not the reference's. On each call it has the
       structure of the attempt's reply or of the reference's.
    2. The second has the reference's numbers, and on each call the structure of the attempt's
       reply. On some call this is not the structure of the reference's.
    3. The two have different misconceptions.
    """
    recording = response.recording
    expected_replies = {i: recording.expected_reply(i) for i in sorted(response.calls)}
    actual_replies = expected_replies | {i: e.actual for i, e in response.syndrome.items()}

    # A set of (call, structure). A mutant with random replies has fewer calls in it, so `<=`
    # compares only the calls in which it has a reply.
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
            for mutant in with_wrong_numbers:
                if response.id(mutant) != response.id(second):
                    return mutant, second
    return ()


def _with_numbers_of(
    recording: FaultDictionary, replies: Mapping[int, ReplyFingerprint]
) -> list[int]:
    """Return the mutants that return the numbers of these replies on each call that both answer.

    Both must answer more than half of the calls. Random replies of a mutant are not compared.
    """

    @cache
    def has_these_numbers(call: int, index: int) -> bool:
        reply = recording.replies[call][index]
        return bool(reply.raised) or reply.agrees(replies[call], ("outputs",))

    answered, matches = [i for i, reply in replies.items() if not reply.raised], list[int]()
    for m, mutant in enumerate(recording.mutants):
        indices = ((i, index) for i in answered if (index := mutant.answers[i]) is not None)
        if all(has_these_numbers(i, index) for i, index in indices):
            answers = recording.answers(m, answered).values()
            if 2 * sum(not answer.raised for answer in answers) > len(replies):
                matches.append(m)
    return matches
