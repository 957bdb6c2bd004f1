"""How pairs of mutants answer, each on one call, and the columns in which a recording has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .columns import from_rows, narrow, to_rows
from .sketch import HEAD, Sketches


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
        """The pairs in these rows."""
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
