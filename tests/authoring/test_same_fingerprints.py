"""Two fingerprint files are the same where each mutant's answers are: how they are stored, and what rounding decides, may differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from manyheads.authoring.compare_recordings import MOST_UNDECIDED, same_fingerprints
from manyheads.course import load_course
from manyheads.diagnosis.recording import Content, RecordedMutant, Recording
from manyheads.diagnosis.recording_file import loaded, save
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded


@pytest.fixture(scope="module")
def known() -> Recording:
    """Of an exercise with some hundred mutants."""
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == "causal_mask")
    return loaded(exercise.fingerprints.read_bytes())


def with_mutant(content: Content, number: int, mutant: RecordedMutant) -> Content:
    mutants = list(content.mutants)
    mutants[number] = mutant
    return replace(content, mutants=tuple(mutants))


def without(count: int) -> Callable[[Content], Content]:
    """So many answers left out, from the last mutant's on back."""

    def edited(content: Content) -> Content:
        left = count
        for number in reversed(range(len(content.mutants))):
            mutant = content.mutants[number]
            kept = tuple(answer if i >= left else None for i, answer in enumerate(mutant.answers))
            left -= sum(a is not None and b is None for a, b in zip(mutant.answers, kept, strict=True))
            content = with_mutant(content, number, replace(mutant, answers=kept))
            if left <= 0:
                break
        return content

    return edited


def stored_twice(content: Content) -> Content:
    """The reference's reply to the first call once more, for the mutants that give it."""
    replies = ((*content.replies[0], content.replies[0][0]), *content.replies[1:])
    another = len(content.replies[0])
    mutants = tuple(
        replace(m, answers=(another if m.answers[0] == 0 else m.answers[0], *m.answers[1:])) for m in content.mutants
    )
    return replace(content, replies=replies, mutants=mutants)


def answered_as_another(content: Content) -> Content:
    number, mutant = next((n, m) for n, m in enumerate(content.mutants) if m.answers[0])
    return with_mutant(content, number, replace(mutant, answers=(0, *mutant.answers[1:])))


def named_otherwise(content: Content) -> Content:
    return with_mutant(content, 0, replace(content.mutants[0], id="another"))


def one_mutant_less(content: Content) -> Content:
    return replace(content, mutants=content.mutants[:-1])


def one_check_less(content: Content) -> Content:
    return replace(content, checks=content.checks[:-1])


@pytest.mark.parametrize("edit", [pytest.param(stored_twice), pytest.param(without(1), id="without_one_answer")])
def test_what_another_processor_would_write_is_the_same(known: Recording, edit: Callable[[Content], Content]) -> None:
    before, made = save(known), save(replace(known, content=edit(known.content)))
    assert before != made
    assert same_fingerprints(before, made)
    assert same_fingerprints(made, before)


@pytest.mark.parametrize("edit", [answered_as_another, named_otherwise, one_mutant_less, one_check_less])
def test_another_answer_is_not(known: Recording, edit: Callable[[Content], Content]) -> None:
    before, made = save(known), save(replace(known, content=edit(known.content)))
    assert not same_fingerprints(before, made)
    assert not same_fingerprints(made, before)


def test_neither_are_more_answers_left_out_than_rounding_decides(known: Recording) -> None:
    answers = len(known.mutants) * len(known.replies)
    most = int(MOST_UNDECIDED * answers)
    before = save(known)
    assert same_fingerprints(before, save(replace(known, content=without(most)(known.content))))
    assert not same_fingerprints(before, save(replace(known, content=without(most + 1)(known.content))))


def test_another_output_of_the_reference_is_not(known: Recording) -> None:
    number, outputs = next((n, each) for n, each in enumerate(known.expected) if each and each[0] is not None)
    assert outputs[0] is not None
    others = (*known.expected[:number], (outputs[0] + 1, *outputs[1:]), *known.expected[number + 1 :])
    assert not same_fingerprints(save(known), save(replace(known, expected=others)))


def test_a_file_that_cannot_be_read_is_not(known: Recording) -> None:
    assert not same_fingerprints(b"", save(known))
    assert not same_fingerprints(save(known)[:-1], save(known))
