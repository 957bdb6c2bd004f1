"""Two fingerprint files are the same where each mutant's answers are: how they are stored, and what rounding decides, may differ."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.authoring.compare_recordings import MOST_UNDECIDED, same_fingerprints, same_numbers
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
    first = [another if m.answers[0] == 0 else m.answers[0] for m in recording.mutants]
    mutants = [replace(m, answers=(n, *m.answers[1:])) for n, m in zip(first, recording.mutants, strict=True)]
    return replace(recording, replies=replies, mutants=tuple(mutants))


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


X, ODD = torch.tensor([1.0, -250.0, 0.0, 3e-9]), [torch.inf, -torch.inf, torch.nan]


@pytest.mark.parametrize(("one", "other", "same"), [
    pytest.param(X, X * (1 + 1e-7), True, id="other last bits"), pytest.param(X, X + 1e-7, True, id="noise around zero"),
    pytest.param(X, X + torch.tensor([0.01, 0, 0, 0]), False, id="another number"),
    pytest.param(X, X.double(), False, id="another dtype"), pytest.param(X, X.view(2, 2), False, id="another shape"),
    pytest.param(X, X.long(), False, id="integers in place of floats"),
    pytest.param(torch.tensor([10_000_000]), torch.tensor([10_000_001]), False, id="integers are compared exactly"),
    *(pytest.param(torch.tensor([1.0, a]), torch.tensor([1.0, b]), str(a) == str(b), id=f"{a} and {b}")
        for a in ODD for b in (*ODD, 0.0, 1e30)),
])  # fmt: skip
def test_numbers_are_the_same_to_rounding_and_what_is_not_finite_is_itself_alone(
    one: Tensor, other: Tensor, same: bool
):
    assert same_numbers(one, other) is same_numbers(other, one) is same
