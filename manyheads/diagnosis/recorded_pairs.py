"""Name two mistakes at once, from recordings: by recorded pairs, or one by its numbers and the other by all else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from .comparison import Comparison
from .diagnosis import Fault
from .fingerprint import ReplyFingerprint
from .pair_answers import Sketches, brief, brief_numbers
from .proofs import DOUBTS
from .recorded_answers import Answered
from .recording import Fingerprints, facets_of

# Two mistakes of which one changes the numbers, and the other only how they come about: a gradient that is cut, an
# argument that is changed, a fixed dtype. Neither answers as both do, but each explains its part.

Structure = tuple[object, ...]


def _apart(answered: Answered) -> tuple[int, ...]:
    """Return two mutants, by their numbers: the first has the attempt's numbers, the second all else of its answers; or none."""
    content, calls = answered.content, sorted(answered.asked)
    right = {i: content.right(i) for i in calls}
    found = right | {i: each.found for i, each in answered.wrong.items() if i in right}
    known = [{i: answer for i in calls if (answer := content.answer(m, i)) is not None} for m in content.mutants]
    calm = [m for m, each in enumerate(known) if _has_numbers_of(each, right)]
    firsts = [m for m, each in enumerate(known) if m not in calm and _has_numbers_of(each, found)]
    for second in calm:
        if _has_all_else_of(answered.fingerprints, known[second], found, right):
            for first in firsts:
                if content.mutants[first].id != content.mutants[second].id:
                    return first, second
    return ()


def _has_numbers_of(known: Mapping[int, ReplyFingerprint], fingerprints: Mapping[int, ReplyFingerprint]) -> bool:
    """Return whether a mutant returns these numbers, wherever both return something; and that is most calls."""
    both = [i for i, each in known.items() if not each.raised and not fingerprints[i].raised]
    return 2 * len(both) > len(fingerprints) and all(known[i].agrees(fingerprints[i], ("outputs",)) for i in both)


def _has_all_else_of(
    fingerprints: Fingerprints,
    known: Mapping[int, ReplyFingerprint],
    found: Mapping[int, ReplyFingerprint],
    right: Mapping[int, ReplyFingerprint],
) -> bool:
    """Return whether a mutant's answers are like these in all but numbers, and somewhere unlike the reference's."""
    mine, theirs, best = ([_structure(fingerprints, i, of[i]) for i in known] for of in (known, found, right))
    return mine == theirs != best


def _structure(fingerprints: Fingerprints, index: int, reply: ReplyFingerprint) -> Structure:
    """Return what of a reply is compared, but for its numbers."""
    if reply.raised:
        return (reply.raised,)
    facets = [f for f in facets_of(fingerprints, index) if f not in ("outputs", "gradients", "argument_gradients")]
    cut = frozenset(name for name, gradient in reply.gradients.items() if gradient is None)
    return (cut, *(repr(getattr(reply, facet)) for facet in facets))


# Two mistakes at once, by what is recorded of pairs of mutants: where no mistake alone explains an attempt's answers.

VISIBLE = 1e-3  # of an answer's norm: the least distance from the reference's of which rounding is no part that counts
CLOSE = 0.01  # of that distance
MOST_ALTERNATIVES = 2  # where more would do beside the mistake that is sure, none of them is told


def explaining_pair(answered: Answered) -> list[Fault]:
    """Return the two misconceptions that together explain all calls on which the attempt differs from the reference.

    One, where of the other too many would do; or none.

    Where both mutants change something, one answer of both together is recorded, which must be the attempt's; where one of
    them changes nothing, the other answers as the attempt does, but for a few calls: the other may be what lets it be seen.
    """
    found = list[tuple[int, tuple[int, int]]]()
    for pair in _that_agree(answered):
        doubts = _doubts(answered, pair)
        if doubts is not None and doubts <= DOUBTS:
            found.append((doubts, pair))
    if found:
        fewest = min(found)[0]
        return _common(answered, [pair for doubts, pair in sorted(found) if doubts <= fewest + 1])
    return [Fault(answered.mutants[m].id, _others(answered, m)) for m in _apart(answered)]


def _common(answered: Answered, pairs: Sequence[tuple[int, int]]) -> list[Fault]:
    """Return what these pairs have in common, the likeliest first: all of the first pair, if what differs in them are few mistakes."""
    mutants = answered.mutants
    kinds = list(dict.fromkeys(frozenset(mutants[m].id for m in pair) for pair in pairs))
    shared = frozenset[str].intersection(*kinds)
    rest = list(dict.fromkeys(id_ for kind in kinds for id_ in sorted(kind - shared)))
    faults = list[Fault]()
    for m in pairs[0] if shared else ():
        id_ = mutants[m].id
        others = () if id_ in shared else tuple(comparison for comparison in rest if comparison != id_)
        if len(others) <= MOST_ALTERNATIVES:
            faults.append(Fault(id_, tuple(dict.fromkeys([*others, *_others(answered, m)]))))
    return faults


def _others(answered: Answered, mutant: int) -> tuple[str, ...]:
    """Return the other misconceptions of which a mutant answers every call alike."""
    one = answered.mutants[mutant]
    return tuple(
        dict.fromkeys(other.id for other in answered.mutants if other.answers == one.answers and other.id != one.id)
    )


def _that_agree(answered: Answered) -> Iterator[tuple[int, int]]:
    """Pairs of mutants, by their numbers, whose recorded answer together is the attempt's, and that of no mutant alone."""
    mutants, pairs = answered.mutants, answered.fingerprints.pairs
    pairs = pairs.at(pairs.answers.numbers.abs().sum(1) > 0)  # many end in the same exception
    for index in pairs.probe.unique().tolist():
        seen = answered.wrong.get(index)
        if seen is not None and _has_weights(seen.found, seen.right) and not _return_alike(seen.found, seen.right):
            here = pairs.at(pairs.probe == index)
            agree = _agree(here.answers, seen)
            if not agree.any() or any(_return_alike(reply, seen.found) for reply in answered.content.replies[index]):
                continue
            for pair in zip(here.first[agree].tolist(), here.second[agree].tolist(), strict=True):
                answers = [answered.content.answer(mutants[m], index) for m in pair]
                has_weights = all(known is not None and _has_weights(known, seen.right) for known in answers)
                if has_weights and mutants[pair[0]].id != mutants[pair[1]].id:
                    yield pair


def _agree(answers: Sketches, seen: Comparison) -> Tensor:
    """Return (N,) bool: which of these answers of pairs are the attempt's.

    How far one is from the attempt's is held against how far that is from the reference's: where mistakes hardly show, the
    answers of all are near it. If rounding is a part of that which counts, nothing agrees.
    """
    mine = brief(seen.reply)
    right = brief_numbers([output.projections for output in seen.right.outputs if output.projections])
    apart = (mine.numbers - right).abs().max()
    near = ((answers.numbers - mine.numbers).abs() <= CLOSE * apart).all(1)
    return answers.agree_with(mine) & near & (apart >= VISIBLE * mine.scales[0])


def _return_alike(a: ReplyFingerprint, b: ReplyFingerprint) -> bool:
    """Return whether both return the same tensors: of a pair's answer no gradients are recorded."""
    return bool(a.outputs and b.outputs) and a.agrees(b, ("outputs",))


def _has_weights(fingerprint: ReplyFingerprint, right: ReplyFingerprint) -> bool:
    """Return whether a module has most of the parameters that it is given: what it answers with others is no evidence."""
    keys = right.parameters.keys()
    return 2 * len(keys & fingerprint.parameters.keys()) >= len(keys)


def _doubts(answered: Answered, pair: tuple[int, int]) -> int | None:
    """On how many calls, of those on which one mutant alone changes something, it does not answer as the attempt.

    None where the attempt is right and the pair is not, or the other way round.
    """
    mutants, doubts = [answered.mutants[m] for m in pair], 0
    for index in answered.asked:
        if any(mutant.answers[index] is None for mutant in mutants):  # chance decides
            continue
        speaking = [m for m in pair if not answered.is_silent(m, index)]
        if len(speaking) < 2 and bool(speaking) != (index in answered.wrong):
            return None
        doubts += len(speaking) == 1 and not answered.explains(speaking[0], index)
    return doubts
