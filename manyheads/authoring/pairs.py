"""The pairs of an exercise's table, for the file that students get: what they answer on recorded calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch

from ..box.worker import wire
from ..box.worker.messages import Call
from ..diagnosis.bank import Bank
from ..diagnosis.pair_answers import Pairs
from ..diagnosis.table import Table


def recorded_pairs(table: Table, bank: Bank, calls: Sequence[Call]) -> Pairs:
    """The pairs whose answer has numbers: many pairs end in the same exception. Each class is its likeliest mutant.

    bank: whose mutants the table is made of. calls: that are recorded, of which most probes are one.
    """
    places = {_content(call): i for i, call in reversed([*enumerate(calls)])}
    probes = torch.tensor([places.get(_content(probe.call), -1) for probe in table.probes], dtype=torch.int16)
    heads = torch.tensor([members[0] for members in table.classes], dtype=torch.int16)
    ids = list(dict.fromkeys(mutant.id for mutant in bank.mutants))
    of_class = torch.tensor([ids.index(bank.mutants[members[0]].id) for members in table.classes])
    pairs = table.pairs
    first, second, probe = pairs.first.long(), pairs.second.long(), probes[pairs.probe.long()]
    has_numbers = pairs.answers.numbers.abs().sum(1) > 0  # NaN everywhere says little
    wanted = (probe >= 0) & has_numbers & (of_class[first] != of_class[second])
    return Pairs(heads[first], heads[second], probe, pairs.answers).at(wanted)


def _content(call: Call) -> tuple[str, ...]:
    """All of a call, number by number."""
    tensors: list[torch.Tensor] = []
    return (json.dumps(wire.to_body(call, tensors)), *(f"{t.dtype} {t.tolist()}" for t in tensors))
