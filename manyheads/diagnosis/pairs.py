"""Name two mistakes at once, where no mistake alone explains an attempt's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import combinations

from torch import Tensor

from ..checks.implementation import LocalRunner
from ..checks.local import as_an_attempts
from .bank import Bank
from .diagnosis import Fault
from .fingerprint import ReplyFingerprint, as_due, fingerprint_beside
from .observe import Observed, settled
from .pair_answers import Sketches, brief, brief_numbers
from .recording import RecordedMutant, Recording, facets_of
from .row import Row

# the most calls on which a pair may answer otherwise than its only mutant that changes something
DOUBTS = 4
# of an answer's norm: the least distance from the reference's of which rounding is no part that
# counts
VISIBLE = 1e-3
CLOSE = 0.01  # of that distance
MOST_ALTERNATIVES = 2  # where more would do beside the mistake that is sure, none of them is told
MADE = 16  # the most pairs that are made for one attempt

Pair = tuple[int, int]


def explaining_pair(row: Row, cover: Callable[[Row], Sequence[Fault]]) -> Sequence[Fault]:
    """Return the two misconceptions that together explain all calls on which the attempt differs
    from the reference.

    One, where of the other too many would do; or none.

    Where both mutants change something, one answer of both together is recorded, which must be the
    attempt's; where one of them changes nothing, the other answers as the attempt does, but for a
    few calls: the other may be what lets it be seen. Where neither changes anything a third mistake
    may be at work, which `cover` has to explain.
    """
    found = dict[Set[int], list[tuple[int, Pair]]]()
    for pair in _that_agree(row):
        doubts, left = _doubts(row, pair)
        if doubts is not None and doubts <= DOUBTS and 2 * len(left) <= len(row.wrong):
            found.setdefault(left, []).append((doubts, pair))
    for left in sorted(found, key=len):
        third = cover(row.of(left | (row.asked - row.wrong.keys()))) if left else ()
        if third or not left:
            fewest = min(found[left])[0]
            two = _common(
                row, [pair for doubts, pair in sorted(found[left]) if doubts <= fewest + 1]
            )
            return [*two, *(fault for fault in third if fault.id not in {each.id for each in two})]
    is_answered = any(each.found.raised is None for each in row.wrong.values())
    return [Fault(row.id(m), _others(row, m)) for m in (_apart(row) if is_answered else ())]


def made_pair(row: Row, bank: Bank) -> Sequence[Fault]:
    """Return two misconceptions whose mutants in one answer every call as the attempt does; they
    are made and run.

    Where one of the two changes nothing, the other answers as the attempt does. Somewhere both
    change something: else each explains its part by itself.
    """
    for first, second in _candidates(row):
        namespace = bank.combine(bank.mutants[first], bank.mutants[second])
        if namespace is not None and _answers_alike(row, LocalRunner(namespace), (first, second)):
            return [Fault(row.id(m), _others(row, m)) for m in (first, second)]
    return []


def _candidates(row: Row) -> list[Pair]:
    """Return the pairs that may explain all wrong answers together, those that explain most alone
    first.

    Of these, those whose answer is least often that of one of them where both change something.
    """
    calls, heads = sorted(row.asked), dict[tuple[str, tuple[int | None, ...]], int]()
    for m, mutant in enumerate(row.recording.mutants):
        heads.setdefault((mutant.id, tuple(mutant.answers[i] for i in calls)), m)
    # a bit for each call
    asked, wrong = (sum(1 << i for i in those) for those in (calls, row.wrong))
    speaks = {m: row.recording.speaks[m] & asked for m in heads.values()}
    speaks = {m: those for m, those in speaks.items() if those and not those & ~wrong}

    @cache
    def explains(mutant: int) -> int:
        return sum(1 << i for i in calls if speaks[mutant] >> i & 1 and row.explains(mutant, i))

    # Many mistakes end in the same exception.
    told = sum(1 << i for i, e in row.wrong.items() if e.found.raised is None)
    found = []
    for a, b in combinations(speaks, 2):
        both = speaks[a] & speaks[b]
        if (speaks[a] | speaks[b]) != wrong or not both & told or row.id(a) == row.id(b):
            continue
        if not speaks[a] & ~both & ~explains(a) and not speaks[b] & ~both & ~explains(b):
            either = explains(a) | explains(b)
            found.append((-either.bit_count(), (either & both).bit_count(), (a, b)))
    return [pair for *_, pair in sorted(found)[:MADE]]


def _answers_alike(row: Row, runner: LocalRunner, pair: Pair) -> bool:
    for i in sorted(row.asked & row.written.keys(), key=lambda i: (i not in row.wrong, i)):
        if any(row.varies(m, i) for m in pair):  # chance decides
            continue
        call, right, mine = row.recording.calls[i], row.recording.right(i), row.written[i].found
        reply = as_an_attempts(runner, call, runner.execute(call))
        if not fingerprint_beside(right, call, settled(call, reply)).agrees(
            mine, facets_of(row.recording, i)
        ):
            return False
    return True


def _common(row: Row, pairs: Sequence[Pair]) -> list[Fault]:
    """Return what these pairs have in common, the likeliest first: all of the first pair, if what
    differs in them are few mistakes.
    """
    kinds = list(dict.fromkeys(frozenset(row.id(m) for m in pair) for pair in pairs))
    shared = frozenset[str].intersection(*kinds)
    rest = list(dict.fromkeys(id_ for kind in kinds for id_ in sorted(kind - shared)))
    faults = list[Fault]()
    for m in pairs[0] if shared else ():
        others = [] if row.id(m) in shared else [id_ for id_ in rest if id_ != row.id(m)]
        if len(others) <= MOST_ALTERNATIVES:
            faults.append(Fault(row.id(m), tuple(dict.fromkeys([*others, *_others(row, m)]))))
    return faults


def _others(row: Row, mutant: int) -> tuple[str, ...]:
    one = row.recording.mutants[mutant]
    return tuple(
        dict.fromkeys(
            o.id for o in row.recording.mutants if o.answers == one.answers and o.id != one.id
        )
    )


def _that_agree(row: Row) -> Iterator[Pair]:
    """Yield pairs whose recorded answer together is the attempt's, and that of no mutant alone."""
    pairs = row.recording.pairs
    pairs = pairs.at(pairs.answers.numbers.abs().sum(1) > 0)  # many end in the same exception
    for index in pairs.probe.unique().tolist():
        seen = row.wrong.get(index)
        if (
            seen is None
            or not _has_weights(seen.found, seen.right)
            or _return_alike(seen.found, seen.right)
        ):
            continue
        here = pairs.at(pairs.probe == index)
        agree = _agree(here.answers, seen)
        if not agree.any() or any(
            _return_alike(reply, seen.found) for reply in row.recording.replies[index]
        ):
            continue
        for pair in zip(here.first[agree].tolist(), here.second[agree].tolist(), strict=True):
            answers = [row.recording.answer(row.recording.mutants[m], index) for m in pair]
            has_weights = all(
                known is not None and _has_weights(known, seen.right) for known in answers
            )
            if has_weights and row.id(pair[0]) != row.id(pair[1]):
                yield pair


def _agree(answers: Sketches, seen: Observed) -> Tensor:
    """Return (N,) bool: which of these answers of pairs are the attempt's.

    How far one is from the attempt's is held against how far that is from the reference's: where
    mistakes hardly show, the answers of all are near it. If rounding is a part of that which
    counts, nothing agrees.
    """
    mine = brief(as_due(seen.reply, seen.right))
    right = brief_numbers(
        [output.projections for output in seen.right.outputs if output.projections]
    )
    apart = (mine.numbers - right).abs().max()
    near = ((answers.numbers - mine.numbers).abs() <= CLOSE * apart).all(1)
    return answers.agree_with(mine) & near & (apart >= VISIBLE * mine.scales[0])


def _return_alike(a: ReplyFingerprint, b: ReplyFingerprint) -> bool:
    """Return whether both return the same tensors: of a pair's answer no gradients are recorded."""
    return bool(a.outputs and b.outputs) and a.agrees(b, ("outputs",))


def _has_weights(fingerprint: ReplyFingerprint, right: ReplyFingerprint) -> bool:
    """Return whether a module has most of the parameters that it is given: what it answers with
    others is no evidence.
    """
    keys = right.parameters.keys()
    return 2 * len(keys & fingerprint.parameters.keys()) >= len(keys)


def _doubts(row: Row, pair: Pair) -> tuple[int | None, Set[int]]:
    """Count the calls that speak against a pair, and return the wrong calls that it does not
    explain.

    A call speaks against the pair if only one of the two mutants changes it, and the attempt
    answers it in another way than that mutant. The count is None if the attempt is right on a call
    that one of the two changes: two mutants may undo each other there, but then neither shows
    itself, and a mistake that nobody has listed explains the answers as well.
    """
    doubts, left = 0, set[int]()
    for index in row.asked:
        if any(row.varies(m, index) for m in pair):  # chance decides
            continue
        speaking = [m for m in pair if not row.silent(m, index)]
        if speaking and index not in row.wrong:
            return None, left
        if not speaking and index in row.wrong:
            left.add(index)
        doubts += len(speaking) == 1 and not row.explains(speaking[0], index)
    return doubts, frozenset(left)


def _apart(row: Row) -> Sequence[int]:
    """Return two mutants: the first has its numbers and nothing that it has not, the second all
    else; or none.

    As where one changes the numbers, and the other how they come about: a cut gradient, a changed
    argument, a fixed dtype.
    """
    recording, calls = row.recording, sorted(row.asked)
    right = {i: recording.right(i) for i in calls}
    found = right | {i: each.found for i, each in row.wrong.items() if i in right}
    calm, firsts = (_with_numbers_of(recording, of) for of in (right, found))
    mine, best = ({i: row.structure(i, of[i]) for i in calls} for of in (found, right))

    def ways(mutant: int) -> Mapping[int, tuple[object, ...]]:
        answers = ((i, recording.answer(recording.mutants[mutant], i)) for i in calls)
        return {i: row.structure(i, answer) for i, answer in answers if answer is not None}

    firsts = [
        m
        for m in firsts
        if m not in calm and all(w in (mine[i], best[i]) for i, w in ways(m).items())
    ]
    for second in calm if firsts else ():
        theirs = ways(second)
        if all(way == mine[i] for i, way in theirs.items()) and any(
            mine[i] != best[i] for i in theirs
        ):
            return next(
                ((first, second) for first in firsts if row.id(first) != row.id(second)), ()
            )
    return ()


def _with_numbers_of(recording: Recording, others: Mapping[int, ReplyFingerprint]) -> list[int]:
    """Return the mutants that return these numbers, wherever both return something; and that is
    most calls.
    """

    @cache
    def agrees(call: int, place: int) -> bool:
        reply = recording.replies[call][place]
        return bool(reply.raised) or reply.agrees(others[call], ("outputs",))

    def returns(mutant: RecordedMutant) -> int:
        known = ((recording.answer(mutant, i), others[i]) for i in others)
        return sum(
            answer is not None and not answer.raised and not other.raised for answer, other in known
        )

    spoken, found = [i for i, other in others.items() if not other.raised], list[int]()
    for m, mutant in enumerate(recording.mutants):
        answers = ((i, place) for i in spoken if (place := mutant.answers[i]) is not None)
        if all(agrees(i, place) for i, place in answers) and 2 * returns(mutant) > len(others):
            found.append(m)
    return found
