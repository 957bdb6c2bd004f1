"""How pairs of mutants answer, each on one call: in the table for grading, and in the file for students."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .sketch import HEAD, Sketches

PREFIX = "pairs."  # of the tensors of pairs in a safetensors file


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


def to_tensors(pairs: Pairs) -> dict[str, Tensor]:
    """The tensors by the names that they have in a file."""
    parts = {"first": pairs.first, "second": pairs.second, "probe": pairs.probe}
    answers = pairs.answers
    parts |= {"structure": answers.structure, "numbers": answers.numbers, "scales": answers.scales}
    return {f"{PREFIX}{name}": tensor.contiguous() for name, tensor in parts.items()}


def from_tensors(tensors: Mapping[str, Tensor]) -> Pairs:
    """The pairs among a file's tensors. Raises KeyError."""
    first, second, probe, *answers = (
        tensors[f"{PREFIX}{name}"] for name in ("first", "second", "probe", "structure", "numbers", "scales")
    )
    return Pairs(first, second, probe, Sketches(*answers))
