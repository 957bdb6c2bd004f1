"""Many replies in a form that can be compared together: a structure hash and a few numbers for each."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..checks.explain import KINDS, is_refusal, kind_of
from ..checks.projection import PROJECTIONS, project

UNKNOWN = 0  # the structure of an exception of unknown kind, which agrees with nothing
HEAD = 2  # how many numbers of a pair's answer are kept
TOLERANCE = 1e-4  # of a tensor's norm; agreement here only makes a candidate


@dataclass(frozen=True)
class Sketches:
    """N replies to one call. structure: (N,) int64. numbers: (N, V). scales: (N, V), to which differences are relative."""

    structure: Tensor
    numbers: Tensor
    scales: Tensor

    def at(self, which: Tensor | list[int]) -> Sketches:
        """The sketches in these rows."""
        return Sketches(self.structure[which], self.numbers[which], self.scales[which])

    def raised(self) -> Tensor:
        """(N,) bool: which of these are exceptions."""
        return torch.isin(self.structure, torch.tensor(sorted(_EXCEPTIONS)))

    def agree_with(self, other: Sketches) -> Tensor:
        """(N,) bool: which of these agree with the single reply in `other`."""
        width = max(self.numbers.shape[1], other.numbers.shape[1])
        mine, theirs = _padded(self.numbers, width), _padded(other.numbers, width)
        scales = torch.maximum(_wide(self.scales, width), _wide(other.scales, width))
        near = (mine - theirs).abs() <= TOLERANCE * scales.clamp_min(1e-9)
        return (self.structure == other.structure) & (self.structure != UNKNOWN) & near.all(1)


def sketch(replies: Sequence[Reply]) -> Sketches:
    """The sketches of replies to the same call."""
    rows = [_row(reply) for reply in replies]
    width = max((len(numbers) for _, numbers, _ in rows), default=0)
    return Sketches(
        torch.tensor([structure for structure, _, _ in rows], dtype=torch.int64),
        torch.tensor([numbers + [0.0] * (width - len(numbers)) for _, numbers, _ in rows], dtype=torch.float32),
        torch.tensor([scales + [0.0] * (width - len(scales)) for _, _, scales in rows], dtype=torch.float32),
    )


def brief(reply: Reply) -> Sketches:
    """A sketch of few numbers, in which each tensor that is returned has a part of its own, and of one scale.

    In one of several tensors (the first of three chunks, y beside lse) a mistake may not show.
    """
    structure, numbers, scales = _row(reply)
    ends = PROJECTIONS * sum(out.tensor is not None for out in reply.outputs) if reply.raised is None else 0
    size = math.hypot(*(place * norm for place, norm in enumerate(scales[:ends:PROJECTIONS], 1)))
    scale = torch.tensor([[size]], dtype=torch.float32)
    parts = [numbers[start : start + PROJECTIONS] for start in range(0, ends, PROJECTIONS)]
    return Sketches(torch.tensor([structure], dtype=torch.int64), brief_numbers(parts), scale)


def brief_numbers(projections: Sequence[Sequence[float]]) -> Tensor:
    """(1, HEAD): the numbers of a brief sketch, from the projections of each tensor that is returned."""
    parts = [[place * number for number in each[:HEAD]] for place, each in enumerate(projections, 1)]
    return torch.tensor(parts, dtype=torch.float32).view(-1, HEAD).sum(0, keepdim=True)


def _row(reply: Reply) -> tuple[int, list[float], list[float]]:
    if reply.raised is not None:
        if is_refusal(reply.raised):
            return _hash("refused"), [], []
        kind = kind_of(reply.raised)
        return (UNKNOWN if kind is None else _hash(f"kind {kind.meaning}")), [], []
    words: list[str] = []
    numbers: list[float] = []
    scales: list[float] = []
    for out in reply.outputs:
        if out.tensor is None:
            words.append(out.kind)
            continue
        seen = project(out.tensor)
        words.append(f"{tuple(out.tensor.shape)} {seen.extremes}")
        numbers += seen.numbers
        scales += [seen.norm] * PROJECTIONS
    gradients = {name: None if g is None else project(g) for name, g in sorted(reply.gradients.items())}
    largest = max((g.norm for g in gradients.values() if g is not None), default=0.0)
    for name, found in gradients.items():
        words.append(f"{name} {'none' if found is None else found.extremes}")
        numbers += [] if found is None else found.numbers
        scales += [] if found is None else [largest] * PROJECTIONS
    return _hash("; ".join(words)), numbers, scales


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") + 1


_EXCEPTIONS = {UNKNOWN, _hash("refused"), *(_hash(f"kind {kind.meaning}") for kind in KINDS)}


def _wide(scales: Tensor, width: int) -> Tensor:
    """The scales, padded to this width; a single scale applies to all numbers."""
    return scales if scales.shape[1] == 1 else _padded(scales, width)


def _padded(values: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, width - values.shape[1]))
