"""Record how the reference and every mutant answer on public inputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..checks.explain import KINDS
from ..checks.local import namespace_of
from ..course import Exercise
from ..diagnosis.bank import Bank, load_bank
from ..diagnosis.fingerprint import FACETS, Facet, ReplyFingerprint, has_no_numbers
from ..diagnosis.guards import REFUSES
from ..diagnosis.recording import PublicCheck, RecordedMutant, Recording, Words
from ..diagnosis.recording_file import key_of, save
from ..judge.run_checks import Catalogue
from ..submission.source_text import code_digest
from .asked_aspects import Broken, Subject, broken_aspects, choose_all, within
from .mutant_answers import Asked, Hearing, KnownReplies, Place, answers_of, without_rounding
from .record_calls import RecordedCalls, recorded_calls
from .record_curves import recorded_curves
from .record_pairs import recorded_pairs
from .stub import stub_of

Every = Sequence[Sequence[ReplyFingerprint]]  # for each call the different replies, the reference's first
# An exception, a guard or an unreadable file may prove them.
ALWAYS = {"load_error", REFUSES, *(kind.misconception for kind in KINDS if kind.misconception)}


def recorded_file(catalogue: Catalogue, exercise: Exercise) -> bytes:
    """Make the recording of an exercise. Raises what a broken course raises (CourseError, BrokenReference, …)."""
    recorded, bank = recorded_calls(catalogue, exercise), load_bank(exercise)
    hearing, hidden = Hearing(catalogue, exercise, recorded), [outcome.id for outcome in recorded.outcomes]
    known, groups = KnownReplies(recorded.right), list(recorded.groups.values())

    def broken(answers: Sequence[Asked]) -> Broken:
        return broken_aspects([each.told for each in answers], groups)

    subjects = list[Subject]()
    disputed = set[tuple[int, Facet]]()  # what no check compares: a right attempt differs in it from the reference
    for path in exercise.right_attempts():
        answers = answers_of(recorded, namespace_of(path))
        compared = [each.told for each in answers]
        disputed |= {(i, f) for i, c in enumerate(compared) for f in FACETS if not c.found.agrees(c.right, (f,))}
        subjects.append(Subject(frozenset(), True, broken(answers)))
    for path in exercise.wrong_attempts():  # no mutant stands for them
        answers = answers_of(recorded, namespace := namespace_of(path))
        subjects.append(Subject(_failed(hidden, hearing.of(namespace, answers)), False, broken(answers)))
    heard = list[tuple[object, tuple[str, list[Place], Broken]]]()
    for mutant in bank.mutants:
        answers = answers_of(recorded, mutant.namespace)
        seen = mutant.id, [each.told.found for each in answers]
        result = next((result for other, result in heard if other == seen), None)
        if result is None or not any(result[1]):  # else what is known of the other one is known of this one
            result = hearing.of(mutant.namespace, answers), known.places(mutant.namespace, answers), broken(answers)
        heard.append((seen, result))
    mutants, rows = [], [row for _, (row, _, _) in heard]
    for mutant, (_, (row, places, aspects)) in zip(bank.mutants, heard, strict=True):
        mutants.append(RecordedMutant(mutant.id, known.settled(places)))
        sure = without_rounding(aspects, places, mutants[-1].answers)
        subjects.append(Subject(_failed(hidden, row), False, sure, mutant.id))
    replies = known.replies
    recording = Recording(
        exercise=exercise.id,
        stub=code_digest(stub_of(exercise)),
        checks=tuple(_checks(recorded, replies, disputed, subjects)),
        calls=recorded.calls,
        expected=recorded.expected,
        replies=replies,
        mutants=tuple(mutants),
        words=words_of(bank),
        hidden=tuple(hidden),
        kills=tuple(row.replace("2", "1") for row in rows),
        pairs=recorded_pairs(bank, recorded.calls, replies, mutants),
        curves=recorded_curves(bank, recorded),
        key=key_of(exercise),
        drawn=recorded.drawn,
    )
    return save(recording)


def _failed(hidden: Sequence[str], row: str) -> frozenset[str]:
    """Return the checks that fail by themselves: what a condition asks is seen in no aspect of an answer."""
    return frozenset(check for check, bit in zip(hidden, row, strict=True) if bit == "1")


def words_of(bank: Bank) -> dict[str, Words]:
    """Return what students may read about misconceptions: those of the mutants, and those that speak for themselves."""
    wanted = ALWAYS | {mutant.id for mutant in bank.mutants}
    return {
        id_: Words(title=t.title, explanation=t.explanation, hints=t.hints)
        for id_, t in sorted(bank.texts.items())
        if id_ in wanted
    }


def _checks(
    recorded: RecordedCalls, replies: Every, disputed: set[tuple[int, Facet]], subjects: Sequence[Subject]
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
                facets=_facets(calls, replies, disputed),
                asks=chosen[outcome.id].asks,
                is_last=chosen[outcome.id].is_last,
            )
        )
    return checks


def _facets(calls: Sequence[int], replies: Every, disputed: set[tuple[int, Facet]]) -> tuple[Facet, ...]:
    """Return "outputs", and the other facets that distinguish a mutant from the reference in these calls if outputs do not."""
    facets: list[Facet] = ["outputs"]
    for facet in FACETS[1:]:
        if any((i, facet) in disputed for i in calls):
            continue
        others = ((other, replies[i][0]) for i in calls for other in replies[i][1:])
        if any(each.agrees(right, tuple(facets)) and not each.agrees(right, (facet,)) for each, right in others):
            facets.append(facet)
    return tuple(facets)
