"""Sketches of the replies of pairs of mutants, which are fast to compare, and their columns.

A dictionary has thousands of pairs, so a sketch is only a hash of the reply's structure and two
numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box.worker.messages import Reply
from ..checks.explain import is_refusal, kind_of
from ..checks.projection import Projection, project
from .columns import from_rows, narrow, to_rows

UNKNOWN = 0  # the structure of an exception of unknown kind, which agrees with nothing
HEAD = 2  # numbers of a reply that a sketch keeps
TOLERANCE = 1e-4  # relative to a tensor's norm; a pair that agrees is only a candidate


@dataclass(frozen=True)
class ReplySketch:
    """Sketches of N replies to one call.

    Attributes:
        structure: (N,) int64, the hash of everything but the numbers.
        numbers: (N, HEAD).
        scales: (N, 1), the scale to which differences are relative.
    """

    structure: Tensor
    numbers: Tensor
    scales: Tensor

    def at(self, rows: Tensor | list[int]) -> ReplySketch:
        """Return the sketches in these rows."""
        return ReplySketch(self.structure[rows], self.numbers[rows], self.scales[rows])

    def agree_with(self, sketch: ReplySketch) -> Tensor:
        """Return (N,) bool: which of these agree with the single reply in `sketch`."""
        scales = torch.maximum(self.scales, sketch.scales)
        near = (self.numbers - sketch.numbers).abs() <= TOLERANCE * scales.clamp_min(1e-9)
        return (self.structure == sketch.structure) & (self.structure != UNKNOWN) & near.all(1)


def sketch_reply(reply: Reply) -> ReplySketch:
    """Return the sketch of one reply, which is a weighted sum over all returned tensors.

    A single tensor is not enough, because a mistake may not be visible in it (the first of three
    chunks, or y without lse). The scale is the norm of the weighted norms.
    """
    structure, returned = _structure_of(reply)
    scale = math.hypot(*(weight * projection.norm for weight, projection in enumerate(returned, 1)))
    return ReplySketch(
        torch.tensor([structure], dtype=torch.int64),
        brief_numbers([projection.numbers for projection in returned]),
        torch.tensor([[scale]], dtype=torch.float32),
    )


def brief_numbers(projections: Sequence[Sequence[float]]) -> Tensor:
    """Return (1, HEAD): the numbers of a sketch, from the projections of each returned tensor."""
    weighted = [
        weight * number
        for weight, projection in enumerate(projections, 1)
        for number in projection[:HEAD]
    ]
    return torch.tensor(weighted, dtype=torch.float32).view(-1, HEAD).sum(0, keepdim=True)


def _structure_of(reply: Reply) -> tuple[int, list[Projection]]:
    """Return the hash of a reply without its numbers, and the projections of returned tensors."""
    if reply.raised is not None:
        if is_refusal(reply.raised):
            return _hash("refused"), []
        error_kind = kind_of(reply.raised)
        return (UNKNOWN if error_kind is None else _hash(f"kind {error_kind.meaning}")), []
    words, returned = [], []
    for out in reply.outputs:
        if out.tensor is None:
            words.append(out.kind)
            continue
        returned.append(project(out.tensor))
        words.append(f"{tuple(out.tensor.shape)} {returned[-1].extremes}")
    for name, gradient in sorted(reply.gradients.items()):
        words.append(f"{name} {'none' if gradient is None else project(gradient).extremes}")
    return _hash("; ".join(words)), returned


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") + 1


@dataclass(frozen=True)
class Pairs:
    """P pairs of mutants, each with the reply of both together to one call.

    Attributes:
        first, second: (P,) int16, the indices of the two mutants.
        probe: (P,) int16, the index of a call that detects both.
        answers: the P replies of the combinations to these calls.
    """

    first: Tensor
    second: Tensor
    probe: Tensor
    answers: ReplySketch

    def at(self, rows: Tensor) -> Pairs:
        """Return the pairs in these rows."""
        return Pairs(self.first[rows], self.second[rows], self.probe[rows], self.answers.at(rows))


def no_pairs() -> Pairs:
    """Return zero pairs."""
    none, empty = torch.zeros(0, dtype=torch.int16), torch.zeros(0, HEAD)
    return Pairs(
        none, none, none, ReplySketch(torch.zeros(0, dtype=torch.int64), empty, torch.zeros(0, 1))
    )


def to_columns(pairs: Pairs) -> dict[str, Tensor]:
    """Return the pairs as columns of a file, with each different structure stored once."""
    structures, structure = pairs.answers.structure.unique(return_inverse=True)
    integers, sizes = to_rows(pairs.answers.numbers)
    columns = {
        "first": pairs.first,
        "second": pairs.second,
        "probe": pairs.probe,
        "structure": structure,
    }
    return {
        **{f"pairs.{name}": narrow(column.long()) for name, column in columns.items()},
        "pairs.structures": structures,
        "pairs.sizes": sizes,
        "pairs.numbers": integers.T,
    }


def from_columns(columns: Mapping[str, Tensor]) -> Pairs:
    """Return the pairs of a file. Raises LookupError or RuntimeError if it is damaged."""
    structure = columns["pairs.structures"][columns["pairs.structure"].long()]
    numbers = from_rows(columns["pairs.numbers"].T, columns["pairs.sizes"]).float()
    # Scales are not stored: differences are relative to the scale of the attempt's reply.
    answers = ReplySketch(structure, numbers, torch.zeros(len(structure), 1))
    first, second, probe = (
        columns[f"pairs.{name}"].to(torch.int16) for name in ("first", "second", "probe")
    )
    return Pairs(first, second, probe, answers)
