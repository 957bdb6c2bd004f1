"""Examples with what is recorded of the reference's attention in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from ..course import Exercise
from ..public.heads import Recorded, key_of, read
from .example import Example

AnyExample = TypeVar("AnyExample", bound=Example)


def with_recorded(chosen: Sequence[AnyExample], exercise: Exercise) -> list[AnyExample]:
    """The same examples, and those in their place, each with what is recorded of it. Raises CourseError."""
    recorded = read(exercise.heads)
    return [with_heads(example, recorded) for example in chosen]


def with_heads(example: AnyExample, recorded: Recorded) -> AnyExample:
    """The same example with the reference's heads and tiles, where they are recorded."""
    key = key_of(example.expected)
    return replace(
        example,
        heads=recorded.heads.get(key),
        tiles=recorded.tiles.get(key),
        others=tuple(with_heads(each, recorded) for each in example.others),
        instead=tuple(with_heads(each, recorded) for each in example.instead),
    )
