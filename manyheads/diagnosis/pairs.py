"""Name two mistakes at once, where no mistake alone explains an attempt's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import combinations

from torch import Tensor

from ..checks.runner import LocalRunner, as_an_attempts
from .bank import Bank
from .diagnosis import Candidate
from .fingerprint import ReplyFingerprint, as_due, fingerprint_beside
from .observe import ObservedReply, settled
from .pair_answers import ReplySketch, brief_numbers, sketch_reply
from .recording import FaultDictionary, RecordedMutant, facets_of
from .row import Response

# the most calls on which a pair may answer otherwise than its only mutant that changes something
DOUBTS = 4
# of an answer's norm: the least distance from the reference's of which rounding is no part that
# counts
VISIBLE = 1e-3
CLOSE = 0.01  # of that distance
MOST_ALTERNATIVES = 2  # where more would do beside the mistake that is sure, none of them is told
MADE = 16  # the most pairs that are made for one attempt

Pair = tuple[int, int]


def explaining_pair(
    row: Response, cover: Callable[[Response], Sequence[Candidate]]
) -> Sequence[Candidate]:
    """Return the two misconceptions that together explain all calls on which the attempt differs
    from the reference.

    One, where of the other too many would do; or none.

    Where both mutants change something, one answer of both together is recorded, which must be the
    attempt's; where one of them changes nothing, the other answers as the attempt does, but for a
    few calls: the other may be what lets it be seen. Where neither changes anything a third mistake
    may be at work, which `cover` has to explain.
    """
    candidates = dict[Set[int], list[tuple[int, Pair]]]()
    for pair in _that_agree(row):
        doubts, unexplained = _doubts(row, pair)
        if doubts is not None and doubts <= DOUBTS and 2 * len(unexplained) <= len(row.syndrome):
            candidates.setdefault(unexplained, []).append((doubts, pair))
    for unexplained in sorted(candidates, key=len):
        third = (
            cover(row.subset(unexplained | (row.calls - row.syndrome.keys())))
            if unexplained
            else ()
        )
        if third or not unexplained:
            fewest = min(candidates[unexplained])[0]
            two = _common(
                row,
                [pair for doubts, pair in sorted(candidates[unexplained]) if doubts <= fewest + 1],
            )
            return [
                *two,
                *(fault for fault in third if fault.id not in {common.id for common in two}),
            ]
    is_answered = any(observation.actual.raised is None for observation in row.syndrome.values())
    return [
        Candidate(row.id(m), _alternatives(row, m)) for m in (_apart(row) if is_answered else ())
    ]


def made_pair(row: Response, bank: Bank) -> Sequence[Candidate]:
    """Return two misconceptions whose mutants in one answer every call as the attempt does; they
    are made and run.

    Where one of the two changes nothing, the other answers as the attempt does. Somewhere both
    change something: else each explains its part by itself.
    """
    for first, second in _candidates(row):
        namespace = bank.combine(bank.mutants[first], bank.mutants[second])
        if namespace is not None and _answers_alike(row, LocalRunner(namespace), (first, second)):
            return [Candidate(row.id(m), _alternatives(row, m)) for m in (first, second)]
    return []


def _candidates(row: Response) -> list[Pair]:
    """Return the pairs that may explain all wrong answers together, those that explain most alone
    first.

    Of these, those whose answer is least often that of one of them where both change something.
    """
    calls, heads = sorted(row.calls), dict[tuple[str, tuple[int | None, ...]], int]()
    for m, mutant in enumerate(row.recording.mutants):
        heads.setdefault((mutant.id, tuple(mutant.answers[i] for i in calls)), m)
    # a bit for each call
    asked_bits, wrong_bits = (sum(1 << i for i in those) for those in (calls, row.syndrome))
    speaks = {m: row.recording.detected_in[m] & asked_bits for m in heads.values()}
    speaks = {m: those for m, those in speaks.items() if those and not those & ~wrong_bits}

    @cache
    def explains(mutant: int) -> int:
        return sum(1 << i for i in calls if speaks[mutant] >> i & 1 and row.explains(mutant, i))

    # Many mistakes end in the same exception.
    answered_bits = sum(1 << i for i, e in row.syndrome.items() if e.actual.raised is None)
    candidates = []
    for a, b in combinations(speaks, 2):
        both = speaks[a] & speaks[b]
        if (
            (speaks[a] | speaks[b]) != wrong_bits
            or not both & answered_bits
            or row.id(a) == row.id(b)
        ):
            continue
        if not speaks[a] & ~both & ~explains(a) and not speaks[b] & ~both & ~explains(b):
            either = explains(a) | explains(b)
            candidates.append((-either.bit_count(), (either & both).bit_count(), (a, b)))
    return [pair for *_, pair in sorted(candidates)[:MADE]]


def _answers_alike(row: Response, runner: LocalRunner, pair: Pair) -> bool:
    for i in sorted(row.calls & row.written.keys(), key=lambda i: (i not in row.syndrome, i)):
        if any(row.is_nondeterministic(m, i) for m in pair):  # chance decides
            continue
        call, expected, actual = (
            row.recording.calls[i],
            row.recording.expected_reply(i),
            row.written[i].actual,
        )
        reply = as_an_attempts(runner, call, runner.execute(call))
        if not fingerprint_beside(expected, call, settled(call, reply)).agrees(
            actual, facets_of(row.recording, i)
        ):
            return False
    return True


def _common(row: Response, pairs: Sequence[Pair]) -> list[Candidate]:
    """Return what these pairs have in common, the likeliest first: all of the first pair, if what
    differs in them are few mistakes.
    """
    id_sets = list(dict.fromkeys(frozenset(row.id(m) for m in pair) for pair in pairs))
    shared = frozenset[str].intersection(*id_sets)
    unshared = list(dict.fromkeys(id_ for ids in id_sets for id_ in sorted(ids - shared)))
    faults = list[Candidate]()
    for m in pairs[0] if shared else ():
        alternatives = [] if row.id(m) in shared else [id_ for id_ in unshared if id_ != row.id(m)]
        if len(alternatives) <= MOST_ALTERNATIVES:
            faults.append(
                Candidate(row.id(m), tuple(dict.fromkeys([*alternatives, *_alternatives(row, m)])))
            )
    return faults


def _alternatives(row: Response, mutant: int) -> tuple[str, ...]:
    recorded_mutant = row.recording.mutants[mutant]
    return tuple(
        dict.fromkeys(
            o.id
            for o in row.recording.mutants
            if o.answers == recorded_mutant.answers and o.id != recorded_mutant.id
        )
    )


def _that_agree(row: Response) -> Iterator[Pair]:
    """Yield pairs whose recorded answer together is the attempt's, and that of no mutant alone."""
    pairs = row.recording.pairs
    pairs = pairs.at(pairs.answers.numbers.abs().sum(1) > 0)  # many end in the same exception
    for index in pairs.probe.unique().tolist():
        observation = row.syndrome.get(index)
        if (
            observation is None
            or not _has_weights(observation.actual, observation.expected)
            or _return_alike(observation.actual, observation.expected)
        ):
            continue
        here = pairs.at(pairs.probe == index)
        agree = _agree(here.answers, observation)
        if not agree.any() or any(
            _return_alike(reply, observation.actual) for reply in row.recording.replies[index]
        ):
            continue
        for pair in zip(here.first[agree].tolist(), here.second[agree].tolist(), strict=True):
            answers = [row.recording.answer(row.recording.mutants[m], index) for m in pair]
            has_weights = all(
                answer is not None and _has_weights(answer, observation.expected)
                for answer in answers
            )
            if has_weights and row.id(pair[0]) != row.id(pair[1]):
                yield pair


def _agree(answers: ReplySketch, observation: ObservedReply) -> Tensor:
    """Return (N,) bool: which of these answers of pairs are the attempt's.

    How far one is from the attempt's is held against how far that is from the reference's: where
    mistakes hardly show, the answers of all are near it. If rounding is a part of that which
    counts, nothing agrees.
    """
    sketch = sketch_reply(as_due(observation.reply, observation.expected))
    expected_numbers = brief_numbers(
        [output.projections for output in observation.expected.outputs if output.projections]
    )
    apart = (sketch.numbers - expected_numbers).abs().max()
    near = ((answers.numbers - sketch.numbers).abs() <= CLOSE * apart).all(1)
    return answers.agree_with(sketch) & near & (apart >= VISIBLE * sketch.scales[0])


def _return_alike(a: ReplyFingerprint, b: ReplyFingerprint) -> bool:
    """Return whether both return the same tensors: of a pair's answer no gradients are recorded."""
    return bool(a.outputs and b.outputs) and a.agrees(b, ("outputs",))


def _has_weights(fingerprint: ReplyFingerprint, expected: ReplyFingerprint) -> bool:
    """Return whether a module has most of the parameters that it is given: what it answers with
    others is no evidence.
    """
    keys = expected.parameters.keys()
    return 2 * len(keys & fingerprint.parameters.keys()) >= len(keys)


def _doubts(row: Response, pair: Pair) -> tuple[int | None, Set[int]]:
    """Count the calls that speak against a pair, and return the wrong calls that it does not
    explain.

    A call speaks against the pair if only one of the two mutants changes it, and the attempt
    answers it in another way than that mutant. The count is None if the attempt is right on a call
    that one of the two changes: two mutants may undo each other there, but then neither shows
    itself, and a mistake that nobody has listed explains the answers as well.
    """
    doubts, unexplained = 0, set[int]()
    for index in row.calls:
        if any(row.is_nondeterministic(m, index) for m in pair):  # chance decides
            continue
        speaking = [m for m in pair if not row.survives(m, index)]
        if speaking and index not in row.syndrome:
            return None, unexplained
        if not speaking and index in row.syndrome:
            unexplained.add(index)
        doubts += len(speaking) == 1 and not row.explains(speaking[0], index)
    return doubts, frozenset(unexplained)


def _apart(row: Response) -> Sequence[int]:
    """Return two mutants: the first has its numbers and nothing that it has not, the second all
    else; or none.

    As where one changes the numbers, and the other how they come about: a cut gradient, a changed
    argument, a fixed dtype.
    """
    recording, calls = row.recording, sorted(row.calls)
    expected_replies = {i: recording.expected_reply(i) for i in calls}
    actual_replies = expected_replies | {
        i: observation.actual for i, observation in row.syndrome.items() if i in expected_replies
    }
    calm, firsts = (
        _with_numbers_of(recording, replies) for replies in (expected_replies, actual_replies)
    )
    actual_structures, best = (
        {i: row.structure(i, replies[i]) for i in calls}
        for replies in (actual_replies, expected_replies)
    )

    def structures(mutant: int) -> Mapping[int, tuple[object, ...]]:
        answers = ((i, recording.answer(recording.mutants[mutant], i)) for i in calls)
        return {i: row.structure(i, answer) for i, answer in answers if answer is not None}

    firsts = [
        m
        for m in firsts
        if m not in calm
        and all(w in (actual_structures[i], best[i]) for i, w in structures(m).items())
    ]
    for second in calm if firsts else ():
        theirs = structures(second)
        if all(structure == actual_structures[i] for i, structure in theirs.items()) and any(
            actual_structures[i] != best[i] for i in theirs
        ):
            return next(
                ((first, second) for first in firsts if row.id(first) != row.id(second)), ()
            )
    return ()


def _with_numbers_of(
    recording: FaultDictionary, replies: Mapping[int, ReplyFingerprint]
) -> list[int]:
    """Return the mutants that return these numbers, wherever both return something; and that is
    most calls.
    """

    @cache
    def agrees(call: int, index: int) -> bool:
        reply = recording.replies[call][index]
        return bool(reply.raised) or reply.agrees(replies[call], ("outputs",))

    def returns(mutant: RecordedMutant) -> int:
        answer_pairs = ((recording.answer(mutant, i), replies[i]) for i in replies)
        return sum(
            answer is not None and not answer.raised and not reply.raised
            for answer, reply in answer_pairs
        )

    spoken, matches = [i for i, reply in replies.items() if not reply.raised], list[int]()
    for m, mutant in enumerate(recording.mutants):
        answers = ((i, index) for i in spoken if (index := mutant.answers[i]) is not None)
        if all(agrees(i, index) for i, index in answers) and 2 * returns(mutant) > len(replies):
            matches.append(m)
    return matches
