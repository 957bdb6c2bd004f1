"""How pairs of mutants answer: in short forms that can be compared by the thousand, and as columns of a recording."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..checks.explain import KINDS, is_refusal, kind_of
from ..checks.projection import Projection, project
from .columns import from_rows, narrow, to_rows

# Short forms of replies, so that tens of thousands can be compared at once: a hash of the structure, and two numbers.

UNKNOWN = 0  # the structure of an exception of unknown kind, which agrees with nothing
HEAD = 2  # how many numbers of a pair's answer are kept
TOLERANCE = 1e-4  # of a tensor's norm; agreement here only makes a candidate


@dataclass(frozen=True)
class Sketches:
    """N replies to one call. structure: (N,) int64. numbers: (N, HEAD). scales: (N, 1), to which differences are relative."""

    structure: Tensor
    numbers: Tensor
    scales: Tensor

    def at(self, which: Tensor | list[int]) -> Sketches:
        """Return the sketches in these rows."""
        return Sketches(self.structure[which], self.numbers[which], self.scales[which])

    def raised(self) -> Tensor:
        """Return (N,) bool: which of these are exceptions."""
        return torch.isin(self.structure, torch.tensor(sorted(_EXCEPTIONS)))

    def agree_with(self, other: Sketches) -> Tensor:
        """Return (N,) bool: which of these agree with the single reply in `other`."""
        scales = torch.maximum(self.scales, other.scales)
        near = (self.numbers - other.numbers).abs() <= TOLERANCE * scales.clamp_min(1e-9)
        return (self.structure == other.structure) & (self.structure != UNKNOWN) & near.all(1)


def brief(reply: Reply) -> Sketches:
    """Return a sketch of one reply, in which each tensor that is returned has a part of its own.

    In one of several tensors (the first of three chunks, y beside lse) a mistake may not show. The scale is that of their sum.
    """
    structure, returned = _structure_of(reply)
    scale = math.hypot(*(place * each.norm for place, each in enumerate(returned, 1)))
    return Sketches(
        torch.tensor([structure], dtype=torch.int64),
        brief_numbers([each.numbers for each in returned]),
        torch.tensor([[scale]], dtype=torch.float32),
    )


def brief_numbers(projections: Sequence[Sequence[float]]) -> Tensor:
    """Return (1, HEAD): the numbers of a brief sketch, from the projections of each tensor that is returned."""
    parts = [[place * number for number in each[:HEAD]] for place, each in enumerate(projections, 1)]
    return torch.tensor(parts, dtype=torch.float32).view(-1, HEAD).sum(0, keepdim=True)


def _structure_of(reply: Reply) -> tuple[int, list[Projection]]:
    """Return the hash of all but a reply's numbers, and the projection of each tensor that it returns."""
    if reply.raised is not None:
        if is_refusal(reply.raised):
            return _hash("refused"), []
        kind = kind_of(reply.raised)
        return (UNKNOWN if kind is None else _hash(f"kind {kind.meaning}")), []
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


_EXCEPTIONS = {UNKNOWN, _hash("refused"), *(_hash(f"kind {kind.meaning}") for kind in KINDS)}


# How pairs of mutants answer, each on one call, and the columns in which a recording has them.


@dataclass(frozen=True)
class Pairs:
    """(P,) int16 each: two mutants, a call on which both change something, and the answer of both faults together there.

    In the table these are the numbers of classes of mutants and of probes; in the file for students, of the bank's mutants
    and of the recorded calls.
    """

    first: Tensor
    second: Tensor
    probe: Tensor
    answers: Sketches

    def at(self, which: Tensor) -> Pairs:
        """Return the pairs in these rows."""
        return Pairs(self.first[which], self.second[which], self.probe[which], self.answers.at(which))


def no_pairs() -> Pairs:
    """None."""
    none, empty = torch.zeros(0, dtype=torch.int16), torch.zeros(0, HEAD)
    return Pairs(none, none, none, Sketches(torch.zeros(0, dtype=torch.int64), empty, torch.zeros(0, 1)))


def to_columns(pairs: Pairs) -> dict[str, Tensor]:
    """Return pairs as columns of a file: which there are as one bit each, and every different answer once."""
    if not len(pairs.first):
        return {}
    order = (pairs.first.long() * (1 << 16) + pairs.second.long()).argsort()
    pairs = pairs.at(order)
    heads = torch.cat([pairs.first, pairs.second]).long().unique()
    there = torch.zeros(len(heads), len(heads), dtype=torch.bool)
    there[torch.searchsorted(heads, pairs.first.long()), torch.searchsorted(heads, pairs.second.long())] = True
    structures, structure = pairs.answers.structure.unique(return_inverse=True)
    whole, sizes = to_rows(pairs.answers.numbers)
    rows = torch.cat([structure[:, None], sizes.long()[:, None], whole.long()], 1)
    known: dict[tuple[int, ...], int] = {}
    places = [known.setdefault(tuple(row), len(known)) for row in rows.tolist()]
    new = [place if place < known_before else -1 for place, known_before in zip(places, _before(places), strict=True)]
    different = torch.tensor([*known], dtype=torch.long)
    return {
        "pairs.heads": narrow(heads),
        "pairs.there": _packed(there),
        "pairs.probe": narrow(pairs.probe.long()),
        "pairs.answer": narrow(torch.tensor(new, dtype=torch.long)),
        "pairs.structures": structures,
        "pairs.structure": narrow(different[:, 0]),
        "pairs.sizes": narrow(different[:, 1]),
        "pairs.numbers": different[:, 2:].T.to(torch.int16),
    }


def _before(places: Sequence[int]) -> Iterator[int]:
    """Yield for each place how many different answers stand before it."""
    known = 0
    for place in places:
        yield known
        known = max(known, place + 1)


def from_columns(named: Mapping[str, Tensor]) -> Pairs:
    """Return the pairs of a file, in the order of their mutants. Raises LookupError, RuntimeError."""
    if "pairs.heads" not in named:
        return no_pairs()
    heads, answer = named["pairs.heads"].long(), named["pairs.answer"].long()
    first, second = _unpacked(named["pairs.there"], len(heads)).nonzero(as_tuple=True)
    is_new = answer < 0
    answer = torch.where(is_new, is_new.cumsum(0) - 1, answer)
    numbers = from_rows(named["pairs.numbers"].T, named["pairs.sizes"]).float()
    structure = named["pairs.structures"][named["pairs.structure"].long()]
    # An answer is held against the scale of an attempt's.
    answers = Sketches(structure, numbers, torch.zeros(len(structure), 1)).at(answer)
    return Pairs(
        heads[first].to(torch.int16), heads[second].to(torch.int16), named["pairs.probe"].to(torch.int16), answers
    )


_BITS = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)


def _packed(there: Tensor) -> Tensor:
    flat = there.flatten().to(torch.uint8)
    flat = torch.nn.functional.pad(flat, (0, -len(flat) % 8))
    return (flat.view(-1, 8) * _BITS).sum(1, dtype=torch.uint8)


def _unpacked(packed: Tensor, size: int) -> Tensor:
    bits = (packed[:, None] & _BITS) != 0
    return bits.flatten()[: size * size].view(size, size)
