"""How pairs of mutants answer: in short forms that can be compared by the thousand, and as columns
of a recording.
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
HEAD = 2  # how many numbers of a pair's answer are kept
TOLERANCE = 1e-4  # of a tensor's norm; agreement here only makes a candidate


@dataclass(frozen=True)
class ReplySketch:
    """N replies to one call.

    structure: (N,) int64. numbers: (N, HEAD). scales: (N, 1), to which differences are relative.
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
    """Return a sketch of one reply, in which each tensor that is returned has a part of its own.

    In one of several tensors (the first of three chunks, y beside lse) a mistake may not show. The
    scale is that of their sum.
    """
    structure, returned = _structure_of(reply)
    scale = math.hypot(*(weight * projection.norm for weight, projection in enumerate(returned, 1)))
    return ReplySketch(
        torch.tensor([structure], dtype=torch.int64),
        brief_numbers([projection.numbers for projection in returned]),
        torch.tensor([[scale]], dtype=torch.float32),
    )


def brief_numbers(projections: Sequence[Sequence[float]]) -> Tensor:
    """Return (1, HEAD): the numbers of a brief sketch, from the projections of each tensor that is
    returned.
    """
    weighted = [
        [weight * number for number in projection[:HEAD]]
        for weight, projection in enumerate(projections, 1)
    ]
    return torch.tensor(weighted, dtype=torch.float32).view(-1, HEAD).sum(0, keepdim=True)


def _structure_of(reply: Reply) -> tuple[int, list[Projection]]:
    """Return the hash of all but a reply's numbers, and the projection of each tensor that it
    returns.
    """
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
    """(P,) int16 each: the numbers of two mutants, and of a call on which both change something;
    how both together answer it.
    """

    first: Tensor
    second: Tensor
    probe: Tensor
    answers: ReplySketch

    def at(self, rows: Tensor) -> Pairs:
        """Return the pairs in these rows."""
        return Pairs(self.first[rows], self.second[rows], self.probe[rows], self.answers.at(rows))


def no_pairs() -> Pairs:
    """None."""
    none, empty = torch.zeros(0, dtype=torch.int16), torch.zeros(0, HEAD)
    return Pairs(
        none, none, none, ReplySketch(torch.zeros(0, dtype=torch.int64), empty, torch.zeros(0, 1))
    )


def to_columns(pairs: Pairs) -> dict[str, Tensor]:
    """Return pairs as columns of a file: every different structure of an answer once."""
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


def from_columns(named: Mapping[str, Tensor]) -> Pairs:
    """Return the pairs of a file. Raises LookupError, RuntimeError."""
    structure = named["pairs.structures"][named["pairs.structure"].long()]
    numbers = from_rows(named["pairs.numbers"].T, named["pairs.sizes"]).float()
    # An answer is held against the scale of an attempt's.
    answers = ReplySketch(structure, numbers, torch.zeros(len(structure), 1))
    first, second, probe = (
        named[f"pairs.{name}"].to(torch.int16) for name in ("first", "second", "probe")
    )
    return Pairs(first, second, probe, answers)
