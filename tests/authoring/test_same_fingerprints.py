"""Two fingerprint files are the same where each mutant's answers are: how they are stored, and what rounding decides, may differ."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from manyheads.authoring.compare_recordings import MOST_UNDECIDED, same_fingerprints
from manyheads.course import load_course
from manyheads.diagnosis.recording import RecordedMutant, Recording
from manyheads.diagnosis.recording_file import loaded, save
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded
Edit = Callable[[Recording], Recording]


@pytest.fixture(scope="module")
def known() -> Recording:
    """Of an exercise with some hundred mutants."""
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == "causal_mask")
    return loaded(exercise.fingerprints.read_bytes())


def with_mutant(recording: Recording, number: int, mutant: RecordedMutant) -> Recording:
    mutants = list(recording.mutants)
    mutants[number] = mutant
    return replace(recording, mutants=tuple(mutants))


def without(count: int) -> Edit:
    """So many answers left out, from the last mutant's on back."""

    def edited(recording: Recording) -> Recording:
        left = count
        for number in reversed(range(len(recording.mutants))):
            mutant = recording.mutants[number]
            kept = tuple(answer if i >= left else None for i, answer in enumerate(mutant.answers))
            left -= sum(a is not None and b is None for a, b in zip(mutant.answers, kept, strict=True))
            recording = with_mutant(recording, number, replace(mutant, answers=kept))
            if left <= 0:
                break
        return recording

    return edited


def stored_twice(recording: Recording) -> Recording:
    """The reference's reply to the first call once more, for the mutants that give it."""
    replies = ((*recording.replies[0], recording.replies[0][0]), *recording.replies[1:])
    another = len(recording.replies[0])
    mutants = tuple(
        replace(m, answers=(another if m.answers[0] == 0 else m.answers[0], *m.answers[1:])) for m in recording.mutants
    )
    return replace(recording, replies=replies, mutants=mutants)


def answered_as_another(recording: Recording) -> Recording:
    number, mutant = next((n, m) for n, m in enumerate(recording.mutants) if m.answers[0])
    return with_mutant(recording, number, replace(mutant, answers=(0, *mutant.answers[1:])))


@pytest.mark.parametrize("edit", [pytest.param(stored_twice), pytest.param(without(1), id="without_one_answer")])
def test_what_another_processor_would_write_is_the_same(known: Recording, edit: Edit) -> None:
    before, made = save(known), save(edit(known))
    assert before != made
    assert same_fingerprints(before, made)
    assert same_fingerprints(made, before)


@pytest.mark.parametrize("edit", [
    pytest.param(answered_as_another),
    pytest.param(lambda r: with_mutant(r, 0, replace(r.mutants[0], id="another")), id="named_otherwise"),
    pytest.param(lambda r: replace(r, mutants=r.mutants[:-1]), id="one_mutant_less"),
    pytest.param(lambda r: replace(r, checks=r.checks[:-1]), id="one_check_less"),
])  # fmt: skip
def test_another_answer_is_not(known: Recording, edit: Edit) -> None:
    before, made = save(known), save(edit(known))
    assert not same_fingerprints(before, made)
    assert not same_fingerprints(made, before)


def test_neither_are_more_answers_left_out_than_rounding_decides(known: Recording) -> None:
    answers = len(known.mutants) * len(known.replies)
    most = int(MOST_UNDECIDED * answers)
    before = save(known)
    assert same_fingerprints(before, save(without(most)(known)))
    assert not same_fingerprints(before, save(without(most + 1)(known)))


def test_another_output_of_the_reference_is_not(known: Recording) -> None:
    number, outputs = next((n, each) for n, each in enumerate(known.expected) if each and each[0] is not None)
    assert outputs[0] is not None
    others = (*known.expected[:number], (outputs[0] + 1, *outputs[1:]), *known.expected[number + 1 :])
    assert not same_fingerprints(save(known), save(replace(known, expected=others)))


def test_a_file_that_cannot_be_read_is_not(known: Recording) -> None:
    assert not same_fingerprints(b"", save(known))
    assert not same_fingerprints(save(known)[:-1], save(known))
