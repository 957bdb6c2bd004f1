"""`course trace` and `course plot` show every part of an answer, and every call of a sequence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.answers import Traced
from manyheads.course import load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example import examples
from manyheads.student.example import Example
from manyheads.student.explain_trace import Explained, explained
from manyheads.student.follow import follow
from manyheads.student.plot_content import pictures_of
from manyheads.submission import AttemptSource
from tests.make import edited

pytestmark = pytest.mark.recorded

Show = Callable[[str], list[tuple[Example, Traced, Explained]]]
RETURNED = "return self.proj(y), (k, v)"


@pytest.fixture
def show(repository: Path, box: Box) -> Show:
    """Each example, with what an attempt does that returns this."""
    course = load_course(repository)
    kv_cache = next(exercise for exercise in course.exercises if exercise.id == "kv_cache")

    def shown(returned: str) -> list[tuple[Example, Traced, Explained]]:
        text = edited(kv_cache.solution.read_text(encoding="utf-8"), (RETURNED, f"return {returned}"))
        source = AttemptSource(f"{kv_cache.stem}.py", text)
        found = follow(box, course.limits.for_worker(), source, examples(kv_cache, read(kv_cache.fingerprints)))
        return [(example, traced, explained(example, traced, source)) for example, traced in found.shown]

    return shown


def test_a_sequence_is_an_example_of_its_own_with_a_picture_of_every_call(show: Show) -> None:
    alone, *_, (example, traced, several) = show("(self.proj(y), (k[:, :, :0], v[:, :, :0]))")
    assert alone[2].returned == "returns y (B, T, C): the right numbers"
    assert ", then (x, cache)" in several.title
    assert "y of call 1 (B, T, C): the right numbers" in several.returned
    assert "y of call 2" in several.returned
    assert not several.right
    first, second = [each for each in pictures_of(example, traced) if "y of call" in each.title]
    assert first.caption.endswith(": y of call 1: as expected")
    assert ": y of call 2: the largest difference is" in second.caption


def test_another_structure_is_told(show: Show) -> None:
    example, traced, told = show("self.proj(y)")[0]
    sentence = "a pair (y, cache) was expected; yours returned a tensor alone"
    assert told.returned == f"returns something else: {sentence}"
    assert pictures_of(example, traced)[-1].caption.endswith(": y: yours is no tensor")
