"""`course trace` and `course plot` show every part of an answer, and every call of a sequence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.public.file import read
from manyheads.submission import AttemptSource
from manyheads.tools.calls import Example, examples
from manyheads.tools.follow import Followed, follow
from manyheads.tools.plot import bands, summary
from manyheads.tools.source import Source
from manyheads.tools.trace import Explained, explained

Shown = tuple[list[Example], Followed, list[Explained]]


@pytest.fixture
def shown(streams: Course, box: Box, exercise_of: Callable[[str], Exercise]) -> Callable[[str, str], Shown]:
    def show(name: str, text: str) -> Shown:
        exercise = exercise_of(name)
        chosen = examples(exercise, read(exercise.fingerprints))
        source = AttemptSource(f"{exercise.stem}.py", text)
        traced = follow(box, streams.limits.for_worker(), source, chosen)
        told = [explained(e, t, Source(tuple(text.splitlines()))) for e, t in zip(chosen, traced.traced, strict=True)]
        return chosen, traced, told

    return show


def test_a_sequence_is_an_example_of_its_own(shown, mutant_of: Callable[[str, str], str]) -> None:
    _, _, (alone, several) = shown("running_mean", mutant_of("running_mean", "state_ignored"))
    assert alone.title == "RunningMean(width=3)(x)"
    assert alone.returned == "returns means (B, T, C): the right numbers"
    assert several.title.startswith("RunningMean(width=3)(x), then (x, state)")
    assert "means of call 1 (B, T, C): the right numbers" in several.returned
    assert "means of call 2" in several.returned
    assert not several.right


def test_every_part_has_its_verdict(shown, mutant_of: Callable[[str, str], str]) -> None:
    _, _, (pair, ends) = shown("mean_and_spread", mutant_of("mean_and_spread", "root_missing"))
    assert pair.returned == "returns mean (B): the right numbers; spread (B): the right shape, other numbers"
    assert (pair.right, ends.right) == (False, True)


def test_another_structure_is_told(shown, mutant_of: Callable[[str, str], str]) -> None:
    chosen, traced, told = shown("running_mean", mutant_of("running_mean", "state_alone"))
    sentence = "a pair (means, state) was expected; yours returned a tensor alone"
    assert told[0].returned == f"returns something else: {sentence}"
    assert summary(bands(chosen[0], traced.traced[0])) == ["RunningMean(width=3)(x): means: yours is no tensor"]


def test_every_part_has_a_picture(shown, mutant_of: Callable[[str, str], str]) -> None:
    chosen, traced, _ = shown("running_mean", mutant_of("running_mean", "state_ignored"))
    told = summary(bands(chosen[1], traced.traced[1]))
    assert [line.split(": ")[1] for line in told[:2]] == ["means of call 1", "means of call 2"]
    assert told[0].endswith("as expected")
    assert "the largest difference is" in told[1]
