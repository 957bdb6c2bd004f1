"""The bank of misconceptions: their words, and the mutants that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ...course import Course, CourseError, Exercise
from ..references import namespace_of

Namespace = Mapping[str, object]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str | None = None
    explanation: str | None = None
    hints: tuple[str, str, str] | None = None


class _TextFile(_Words):
    overrides: dict[str, _Words] = {}


@dataclass(frozen=True)
class Text:
    """What a student reads about a misconception. `hints`: a question, a pointer, nearly the answer."""

    title: str
    explanation: str
    hints: tuple[str, str, str]


@dataclass(frozen=True)
class Mutant:
    """A wrong attempt: the misconception it has, and the faults that make it."""

    id: str
    knobs: Mapping[str, object]
    namespace: Namespace = field(repr=False, compare=False)


@dataclass(frozen=True)
class Bank:
    """The mutants of one exercise, most likely first, and the words for every misconception."""

    make: Callable[..., Namespace]
    mutants: tuple[Mutant, ...]
    texts: Mapping[str, Text]

    def combine(self, first: Mutant, second: Mutant) -> Namespace | None:
        """Both faults in one attempt; None where they touch the same knob."""
        if first.knobs.keys() & second.knobs.keys():
            return None
        return self.make(**first.knobs, **second.knobs)


@lru_cache(maxsize=64)
def load_bank(course: Course, exercise: Exercise) -> Bank:
    """The bank of an exercise; one without mutants where the file is missing. Raises CourseError."""
    path = course.misconceptions(exercise)
    texts = _texts(course.root / "grader" / "hidden" / "misconceptions" / "texts.yaml", exercise.id)
    if not path.exists():
        return Bank(dict, (), texts)
    names = namespace_of(path)
    make, listed = names.get("make"), names.get("MUTANTS")
    if not callable(make) or not isinstance(listed, tuple):
        raise CourseError(
            f"{path} needs a function make(**knobs) and a tuple MUTANTS. Next: course verify {exercise.id}"
        )
    mutants = tuple(Mutant(id_, knobs, make(**knobs)) for id_, knobs in listed)
    return Bank(make, mutants, texts)


def _texts(path: Path, exercise: str) -> dict[str, Text]:
    if not path.exists():
        return {}
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        read = TypeAdapter(dict[str, _TextFile]).validate_python(raw)
    except (yaml.YAMLError, ValidationError) as error:
        problem = " ".join(str(error).split())[:300]
        raise CourseError(f"{path}: {problem}. Next: mend it, then course verify") from None
    return {id_: _text(entry, entry.overrides.get(exercise, _Words())) for id_, entry in read.items()}


def _text(general: _Words, special: _Words) -> Text:
    title = special.title or general.title or ""
    hints = special.hints or general.hints or ("", "", "")
    return Text(title, special.explanation or general.explanation or "", hints)
