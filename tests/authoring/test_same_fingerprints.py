"""Two fingerprint files are the same where each mutant's answers are: how they are stored, and what rounding decides, may differ."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

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
    mutants = recording.mutants
    return replace(recording, mutants=(*mutants[:number], mutant, *mutants[number + 1 :]))


def without(recording: Recording, more: int = 0) -> Recording:
    """Without as many answers as rounding may decide, and so many more."""
    left = int(MOST_UNDECIDED * len(recording.mutants) * len(recording.replies)) + more
    for number, mutant in enumerate(recording.mutants):
        there = [i for i, answer in enumerate(mutant.answers) if answer is not None][:left]
        kept = tuple(None if i in there else answer for i, answer in enumerate(mutant.answers))
        recording, left = with_mutant(recording, number, replace(mutant, answers=kept)), left - len(there)
    return recording


def stored_twice(recording: Recording) -> Recording:
    """The reference's reply to the first call once more, for the mutants that give it."""
    another = len(recording.replies[0])
    replies = ((*recording.replies[0], recording.replies[0][0]), *recording.replies[1:])
    mutants = [replace(m, answers=(m.answers[0] or another, *m.answers[1:])) for m in recording.mutants]
    return replace(recording, replies=replies, mutants=tuple(mutants))


def answered_as_another(recording: Recording) -> Recording:
    number, mutant = next((n, m) for n, m in enumerate(recording.mutants) if m.answers[0])
    return with_mutant(recording, number, replace(mutant, answers=(0, *mutant.answers[1:])))


def of_another_output(recording: Recording) -> Recording:
    number, outputs = next((n, each) for n, each in enumerate(recording.expected) if each and each[0] is not None)
    others = (*recording.expected[:number], (outputs[0] + 1, *outputs[1:]), *recording.expected[number + 1 :])
    return replace(recording, expected=others)


@pytest.mark.parametrize(("edit", "same"), [
    pytest.param(stored_twice, True, id="a reply that is stored twice"),
    pytest.param(without, True, id="answers that rounding decides"),
    pytest.param(lambda r: without(r, more=1), False, id="one answer less than that"),
    pytest.param(answered_as_another, False, id="another answer"),
    pytest.param(of_another_output, False, id="another output of the reference"),
    pytest.param(lambda r: with_mutant(r, 0, replace(r.mutants[0], id="another")), False, id="another name"),
    pytest.param(lambda r: replace(r, mutants=r.mutants[:-1]), False, id="a mutant less"),
    pytest.param(lambda r: replace(r, checks=r.checks[:-1]), False, id="a check less"),
])  # fmt: skip
def test_what_another_processor_would_write_is_the_same_and_nothing_else_is(known: Recording, edit: Edit, same: bool):
    before, made = save(known), save(edit(known))
    assert before != made
    assert same_fingerprints(before, made) is same_fingerprints(made, before) is same


def test_a_file_that_cannot_be_read_is_not(known: Recording) -> None:
    assert not same_fingerprints(b"", save(known))
    assert not same_fingerprints(save(known)[:-1], save(known))


X, ODD = torch.tensor([1.0, -250.0, 0.0, 3e-9]), [torch.inf, -torch.inf, torch.nan]


@pytest.mark.parametrize(("one", "other", "same"), [
    pytest.param(X, X * (1 + 1e-7), True, id="other last bits"),
    pytest.param(X, X + 1e-7, True, id="noise around zero"),
    pytest.param(X, X + torch.tensor([0.01, 0, 0, 0]), False, id="another number"),
    pytest.param(X, X.double(), False, id="another dtype"),
    pytest.param(X, X.view(2, 2), False, id="another shape"),
    pytest.param(torch.tensor([10_000_000]), torch.tensor([10_000_001]), False, id="integers are compared exactly"),
    *(pytest.param(torch.tensor([1.0, a]), torch.tensor([1.0, b]), str(a) == str(b), id=f"{a} and {b}")
        for a in ODD for b in (*ODD, 0.0, 1e30)),
])  # fmt: skip
def test_numbers_are_the_same_to_rounding_and_what_is_not_finite_is_itself_alone(one, other, same):
    assert same_numbers(one, other) is same_numbers(other, one) is same
