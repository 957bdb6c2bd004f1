"""A fingerprint file that was edited by hand is refused in one sentence, before anything is compared with it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from manyheads.course import CourseError
from manyheads.diagnosis.recording import Recording
from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import refuse_what_does_not_fit

from .test_check_attempt import FILE

pytestmark = pytest.mark.recorded


def with_answer(index: int) -> Callable[[Recording], Recording]:
    def change(recording: Recording) -> Recording:
        first, *others = recording.mutants
        return replace(recording, mutants=(replace(first, answers=(index, *first.answers[1:])), *others))

    return change


def with_pair(part: str, index: int) -> Callable[[Recording], Recording]:
    def change(recording: Recording) -> Recording:
        zeros, answers = torch.zeros(1, dtype=torch.int16), recording.pairs.answers
        one = replace(answers, structure=torch.zeros(1), numbers=torch.zeros(1, 4), scales=torch.zeros(1, 1))
        pairs = replace(recording.pairs, first=zeros, second=zeros, probe=zeros, answers=one)
        return replace(recording, pairs=replace(pairs, **{part: zeros + index}))

    return change


def test_the_file_as_released_fits() -> None:
    refuse_what_does_not_fit(read(FILE), FILE)
    refuse_what_does_not_fit(with_pair("first", 0)(read(FILE)), FILE)


@pytest.mark.parametrize("edit", [
    pytest.param(lambda f: replace(f, calls=()), id="no calls"),
    pytest.param(lambda f: replace(f, calls=(replace(f.calls[0], args=None), *f.calls[1:])), id="no arguments"),
    pytest.param(lambda f: replace(f, expected=f.expected[:-1]), id="an answer less"),
    pytest.param(lambda f: replace(f, replies=f.replies[:-1]), id="a reply less"),
    pytest.param(with_answer(10**6), id="an answer that nobody gave"),
    pytest.param(with_answer(-1), id="an answer before the first"),
    pytest.param(with_pair("first", 30_000), id="a pair of nobody"),
    pytest.param(with_pair("probe", 30_000), id="a pair on no call"),
    pytest.param(lambda f: replace(f, pairs=replace(f.pairs, first=torch.zeros(3))), id="half a pair"),
])  # fmt: skip
def test_what_does_not_fit_is_one_sentence(edit: Callable[[Recording], Recording]) -> None:
    with pytest.raises(CourseError, match=rf"^{FILE} was changed: .*\. As an .* Next: git checkout {FILE}$"):
        refuse_what_does_not_fit(edit(read(FILE)), FILE)
