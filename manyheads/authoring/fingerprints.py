"""Record how the reference and every mutant answer on public inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..checks.explain import KINDS
from ..course import Exercise
from ..diagnosis.bank import Bank, load_bank
from ..diagnosis.fingerprint import FACETS, Facet, ReplyFingerprint, has_no_numbers
from ..diagnosis.guards import REFUSES
from ..diagnosis.recording import Content, Fingerprints, Probe, PublicCheck, RecordedMutant, Words
from ..diagnosis.recording_file import KillMatrix, key_of, save
from ..submission.source_text import code_digest
from .asked_aspects import Broken, Subject, broken_aspects, choose_all, within
from .mutant_answers import Answers, Replies, compared_with
from .public_calls import RecordedCalls
from .record_pairs import classes_of, probes_of, recorded_pairs

# The different replies to every recorded call, as the fingerprint file stores them.

Places = tuple[int | None, ...]  # for each call the index of its reply, None where chance or rounding decides it


class KnownReplies:
    """The different replies to every call, each stored once: a mutant differs from the reference on a few calls only."""

    def __init__(self, right: Sequence[ReplyFingerprint]) -> None:
        self._known = [Replies() for _ in right]
        for known, each in zip(self._known, right, strict=True):
            known.add(each)

    @property
    def replies(self) -> tuple[tuple[ReplyFingerprint, ...], ...]:
        """For each call its different replies, the reference's first."""
        return tuple(tuple(known.every) for known in self._known)

    def add_all(self, answers: Answers) -> Iterator[tuple[Places, Broken]]:
        """Store the mutants' replies. Yields for each its replies by index, and where it is not as the reference.

        A reply that rounding decides is no reply, unless another mutant gives it for sure; what it breaks differs from
        processor to processor, too. What chance decides is drawn from the call's seed, and is the same everywhere.
        """
        for mutant in answers.mutants:
            places = tuple(self._place(answers, call, place) for call, place in enumerate(mutant.places))
            of_rounding = {i for i, place in enumerate(places) if place is None and mutant.places[i] is not None}
            yield places, frozenset(each for each in mutant.broken if of_rounding.isdisjoint(each[1]))

    def _place(self, answers: Answers, call: int, place: int | None) -> int | None:
        """Return the index of the reply. Numbers are compared to rounding, so that every processor stores the same replies."""
        if not place:
            return place
        if place < 0:
            return self._known[call].find(answers.unsure[call][-1 - place])
        found = answers.sure[call][place - 1]
        known = self._known[call].find(found)
        return self._known[call].add(found) if known is None else known


ALWAYS = {
    "load_error",
    REFUSES,
    *(kind.misconception for kind in KINDS if kind.misconception),
}  # an exception, a guard or an unreadable file may prove them


def recorded_file(
    exercise: Exercise,
    stub: str,
    recorded: RecordedCalls,
    answers: Sequence[Answers],
    kills: KillMatrix,
    unlisted: Mapping[Path, frozenset[str]],
) -> bytes:
    """Make the fingerprint file of an exercise.

    answers: of all mutants of the bank, part by part. unlisted: the checks that each wrong attempt fails that is no mutant.
    """
    bank = load_bank(exercise)
    known = KnownReplies(recorded.right)
    right, disputed = _right_attempts(recorded, exercise)
    mutants = []
    subjects = [*right, *(Subject(fails, False, _broken(recorded, path)) for path, fails in unlisted.items())]
    found = [each for part in answers for each in known.add_all(part)]
    for place, (mutant, (places, broken)) in enumerate(zip(bank.mutants, found, strict=True)):
        mutants.append(RecordedMutant(mutant.id, places))
        subjects.append(Subject(frozenset(kills.of(place)), False, broken, mutant.id))
    classes = classes_of(recorded.calls, known.replies, mutants)
    probes = probes_of(recorded.calls, classes)
    indices = [classes.calls[k] for k in probes]
    content = Content(
        exercise=exercise.id,
        stub=code_digest(stub),
        checks=tuple(_checks(recorded, known, disputed, subjects)),
        replies=known.replies,
        mutants=tuple(mutants),
        words=words_of(bank),
        probes=tuple(Probe(i, recorded.asked_by[i], recorded.nth[i]) for i in indices),
        hidden=kills.checks,
        kills=kills.mutants,
        classes=classes.of,
    )
    pairs = recorded_pairs(bank, recorded.calls, classes, probes)
    return save(Fingerprints(content, recorded.calls, recorded.expected, pairs, key_of(exercise), recorded.drawn))


def words_of(bank: Bank) -> dict[str, Words]:
    """Return what students may read about misconceptions: those of the mutants, and those that speak for themselves."""
    wanted = ALWAYS | {mutant.id for mutant in bank.mutants}
    return {
        id_: Words(title=t.title, explanation=t.explanation, hints=t.hints)
        for id_, t in sorted(bank.texts.items())
        if id_ in wanted
    }


def _right_attempts(recorded: RecordedCalls, exercise: Exercise) -> tuple[list[Subject], set[tuple[int, Facet]]]:
    """Return the right attempts, which fail no check.

    And the facets, with their calls, in which one differs from the reference: no check compares them.
    """
    subjects, disputed = [], set[tuple[int, Facet]]()
    for path in exercise.right_attempts():
        answers = compared_with(recorded, path)
        disputed |= {(i, f) for i, c in enumerate(answers) for f in FACETS if not c.found.agrees(c.right, (f,))}
        subjects.append(Subject(frozenset(), True, broken_aspects(answers, list(recorded.groups.values()))))
    return subjects, disputed


def _broken(recorded: RecordedCalls, path: Path) -> Broken:
    return broken_aspects(compared_with(recorded, path), list(recorded.groups.values()))


def _checks(
    recorded: RecordedCalls, known: KnownReplies, disputed: set[tuple[int, Facet]], subjects: Sequence[Subject]
) -> list[PublicCheck]:
    """Return a public check for every hidden one that has recorded calls."""
    every = {outcome.id: found for outcome in recorded.outcomes if (found := recorded.of(outcome.id))}
    asked = {id_: [i for i in found if (i, "outputs") not in disputed] for id_, found in every.items()}
    # Who looks at numbers that are not there raises, and may.
    without_numbers = {i for i, right in enumerate(recorded.right) if has_no_numbers(right)}
    groups = {
        id_: within(recorded.groups[id_], sorted({*asked[id_], *without_numbers.intersection(found)}))
        for id_, found in every.items()
    }
    chosen, checks = choose_all(groups, subjects), []
    for outcome in recorded.outcomes:
        if outcome.id not in every:
            continue
        calls = tuple(asked[outcome.id])
        checks.append(
            PublicCheck(
                id=outcome.id,
                title=outcome.title,
                layer=outcome.layer,
                hint=outcome.hint,
                points=outcome.points,
                calls=calls,
                facets=_facets(calls, known, disputed),
                asks=chosen[outcome.id].asks,
                is_last=chosen[outcome.id].is_last,
            )
        )
    return checks


def _facets(calls: Sequence[int], known: KnownReplies, disputed: set[tuple[int, Facet]]) -> tuple[Facet, ...]:
    """Return "outputs", and the other facets that distinguish a mutant from the reference in these calls if outputs do not."""
    facets: list[Facet] = ["outputs"]
    for facet in FACETS[1:]:
        if any((i, facet) in disputed for i in calls):
            continue
        others = ((other, known.replies[i][0]) for i in calls for other in known.replies[i][1:])
        if any(each.agrees(right, tuple(facets)) and not each.agrees(right, (facet,)) for each, right in others):
            facets.append(facet)
    return tuple(facets)
