"""`course trace` and `course plot` show every part of an answer, and every call of a sequence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.answers import Traced
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.student.bands import summary
from manyheads.student.choose_example import examples
from manyheads.student.example import Example
from manyheads.student.explain_trace import Explained, explained
from manyheads.student.follow import Source, follow
from manyheads.student.plot_content import bands
from manyheads.submission import AttemptSource

Shown = list[tuple[Example, Traced, Explained]]


@pytest.fixture
def shown(streams: Course, box: Box, exercise_of: Callable[[str], Exercise]) -> Callable[[str, str], Shown]:
    def show(name: str, text: str) -> Shown:
        exercise = exercise_of(name)
        chosen = examples(exercise, read(exercise.fingerprints))
        source = AttemptSource(f"{exercise.stem}.py", text)
        shown = follow(box, streams.limits.for_worker(), source, chosen).shown
        return [
            (example, traced, explained(example, traced, Source(tuple(text.splitlines())))) for example, traced in shown
        ]

    return show


def test_a_sequence_is_an_example_of_its_own(shown, mutant_of: Callable[[str, str], str]) -> None:
    alone, several = (told for _, _, told in shown("running_mean", mutant_of("running_mean", "state_ignored")))
    assert alone.title == "RunningMean(width=3)(x)"
    assert alone.returned == "returns means (B, T, C): the right numbers"
    assert several.title.startswith("RunningMean(width=3)(x), then (x, state)")
    assert "means of call 1 (B, T, C): the right numbers" in several.returned
    assert "means of call 2" in several.returned
    assert not several.right


def test_every_part_has_its_verdict(shown, mutant_of: Callable[[str, str], str]) -> None:
    ((_, _, pair),) = shown("mean_and_spread", mutant_of("mean_and_spread", "root_missing"))
    assert pair.returned == "returns mean (B): the right numbers; spread (B): the right shape, other numbers"
    assert not pair.right


def test_another_structure_is_told(shown, mutant_of: Callable[[str, str], str]) -> None:
    example, traced, told = shown("running_mean", mutant_of("running_mean", "state_alone"))[0]
    sentence = "a pair (means, state) was expected; yours returned a tensor alone"
    assert told.returned == f"returns something else: {sentence}"
    assert summary(bands(example, traced)) == ["RunningMean(width=3)(x): means: yours is no tensor"]


def test_every_part_has_a_picture(shown, mutant_of: Callable[[str, str], str]) -> None:
    example, traced, _ = shown("running_mean", mutant_of("running_mean", "state_ignored"))[1]
    told = summary(bands(example, traced))
    assert [line.split(": ")[1] for line in told[:2]] == ["means of call 1", "means of call 2"]
    assert told[0].endswith("as expected")
    assert "the largest difference is" in told[1]
