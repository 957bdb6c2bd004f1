"""The fingerprint file of an exercise: a safetensors file, which holds data only."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker import wire
from ..box.worker.messages import Call
from ..course import CourseError
from ..diagnosis.agree import has_own_weights
from ..diagnosis.pair_answers import PREFIX, Pairs, from_tensors, no_pairs, to_tensors
from ..errors import restore
from .aspects import Aspect
from .compared import Expected
from .fingerprint import Facet, ReplyFingerprint

_OF_WEIGHTS: tuple[Facet, ...] = ("outputs", "gradients", "argument_gradients")  # depend on a module's weights


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Ask(_Model):
    """An aspect, and the groups of calls of which it is asked: one call, or two that are held together.

    means: the misconception of all mutants that break it; "" where there are several.
    """

    aspect: Aspect
    calls: tuple[tuple[int, ...], ...]
    means: str = ""

    @model_serializer(mode="wrap")
    def _without_what_is_seldom(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        """In a file, what an aspect means stands with these alone."""
        found: dict[str, object] = serialize(self)
        return {name: value for name, value in found.items() if value or name != "means"}


class PublicCheck(_Model):
    """A hidden check's recorded calls, and what of them is asked on a student's machine.

    asks: empty where recordings cannot give the hidden check's verdict; its calls then serve the diagnosis alone.
    is_last: whether it is asked after those that are not, only of attempts that pass all before it: it says nothing of others.
    facets: by which a mutant is recognised in the replies.
    """

    id: str
    title: str
    layer: int
    hint: str
    points: float
    calls: tuple[int, ...]
    facets: tuple[Facet, ...]
    asks: tuple[Ask, ...]
    is_last: bool = False

    @model_serializer(mode="wrap")
    def _without_what_is_seldom(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        """In a file, that a check is asked last stands with these alone."""
        found: dict[str, object] = serialize(self)
        return {name: value for name, value in found.items() if value or name != "is_last"}

    @property
    def asked(self) -> tuple[int, ...]:
        """All calls: `calls`, whose answers must be the reference's, and those of relations that can be answered otherwise."""
        return tuple(sorted({*self.calls, *(index for ask in self.asks for group in ask.calls for index in group)}))


class RecordedMutant(_Model):
    """A mutant: its misconception, and for each call the index of its reply fingerprint, None where its answer varies."""

    id: str
    answers: tuple[int | None, ...]


class Words(_Model):
    """What a student reads about a misconception."""

    title: str
    explanation: str
    hints: tuple[str, str, str]


class Content(_Model):
    """The JSON part of a fingerprint file."""

    format: Literal[5] = 5  # 4 had no pairs
    exercise: str
    stub: str  # code_digest of the untouched stub
    checks: tuple[PublicCheck, ...]
    replies: tuple[tuple[ReplyFingerprint, ...], ...]  # the different replies to each call, the reference's first
    mutants: tuple[RecordedMutant, ...]
    words: dict[str, Words]

    @property
    def visible(self) -> tuple[PublicCheck, ...]:
        """The checks that `course check` runs."""
        return tuple(check for check in self.checks if check.asks)

    def right(self, call: int) -> ReplyFingerprint:
        """The fingerprint of the reference's reply."""
        return self.replies[call][0]

    def answer(self, mutant: RecordedMutant, call: int) -> ReplyFingerprint | None:
        """The fingerprint of a mutant's reply; None where it varies."""
        index = mutant.answers[call]
        return None if index is None else self.replies[call][index]


@dataclass(frozen=True)
class Fingerprints:
    """Everything that a student's machine knows about the answers: the calls, the reference's outputs, and the content."""

    content: Content
    calls: tuple[Call, ...]
    expected: tuple[Expected, ...]  # what the reference returned to each call
    pairs: Pairs = field(default_factory=no_pairs)  # of mutants, by their places in the content, on one of the calls

    @cached_property
    def facets(self) -> dict[int, tuple[Facet, ...]]:
        """By call, what is compared with mutants: no numbers that depend on weights which nobody gave."""
        return {
            i: tuple(f for f in check.facets if f not in _OF_WEIGHTS)
            if has_own_weights(self.calls[i])
            else check.facets
            for check in reversed(self.content.checks)
            for i in check.calls
        }


def returns_several(call: Call) -> bool:
    """Whether a reply to this call has several outputs in one run."""
    return bool(call.then) or not call.form.is_leaf


def save(fingerprints: Fingerprints) -> bytes:
    """The bytes of the file, which are the same for the same content."""
    tensors: list[Tensor] = []
    calls = [wire.to_body(call, tensors) for call in fingerprints.calls]
    expected = [
        _expected_body(call, each, tensors)
        for call, each in zip(fingerprints.calls, fingerprints.expected, strict=True)
    ]
    body = {"content": fingerprints.content.model_dump(), "calls": calls, "expected": expected}
    named = {f"t{i:04d}": (t.float() if t.is_floating_point() else t).clone() for i, t in enumerate(tensors)}
    named |= to_tensors(fingerprints.pairs)
    return bytes(safetensors.torch.save(named, metadata={"body": json.dumps(body, sort_keys=True)}))


def read(path: Path) -> Fingerprints:
    """Read a fingerprint file. Raises CourseError."""
    try:
        return loaded(path.read_bytes())  # `loaded` caches by content
    except FileNotFoundError as error:
        raise CourseError(
            f"{path} is not here. {restore(path, 'an instructor who has not released it yet')}"
        ) from error
    except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
        problem = type(error).__name__
        raise CourseError(f"{path} cannot be read ({problem}). {restore(path)}") from error


@lru_cache(maxsize=16)
def loaded(data: bytes) -> Fingerprints:
    """Parse the bytes that `save` made. Raises whatever parsing other bytes may raise."""
    named = safetensors.torch.load(data)
    length = int.from_bytes(data[:8], "little")
    body: dict[str, Any] = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["body"])
    tensors = [named[name] for name in sorted(named) if not name.startswith(PREFIX)]
    return Fingerprints(
        Content.model_validate(body["content"]),
        tuple(_call(wire.from_body(c, tensors)) for c in body["calls"]),
        tuple(_expected(each, tensors) for each in body["expected"]),
        from_tensors(named),
    )


def _call(value: object) -> Call:
    if not isinstance(value, Call):
        raise ValueError("not a recorded call")
    return value


def _expected_body(call: Call, expected: Expected, tensors: list[Tensor]) -> object:
    """A list where the call returns several outputs, else the only one."""
    bodies = [wire.to_body(each, tensors) for each in expected]
    return bodies if returns_several(call) else next(iter(bodies), None)


def _expected(body: object, tensors: list[Tensor]) -> Expected:
    parts = body if isinstance(body, list) else [body]
    return tuple(None if each is None else _tensor(wire.from_body(each, tensors)) for each in parts)


def _tensor(value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise ValueError("not a recorded output")
    return value
