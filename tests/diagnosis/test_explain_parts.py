"""Faults whose answers depend on the calls before are found by replaying all calls in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from manyheads.diagnosis.explain_parts import explain_in_order
from torch import Tensor

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.diagnosis.bank import Bank, Mutant


def make(remembers: bool = False, factor: float = 1.0, shift: float = 0.0) -> Mapping[str, object]:
    def f(x: Tensor, seen: list[Tensor] = []) -> Tensor:  # noqa: B006
        if remembers:
            seen.append(x)
        return torch.stack([*seen, x]).sum(0) * factor + shift

    # A new default for each make: a function's defaults are made with it.
    return {"f": f}


LISTED = (("remembers", {"remembers": True}), ("doubled", {"factor": 2.0}), ("shifted", {"shift": 1.0}))
BANK = Bank(make, tuple(Mutant(id_, knobs, make(**knobs)) for id_, knobs in LISTED), {})
CALLS = [Call("f", (torch.full((2,), float(n)),)) for n in (1, 2, 3, 1)]


def explained(proven: set[str], names: Mapping[str, object]) -> list[str] | None:
    attempt = LocalRecordingRunner(names)
    for call in CALLS:
        attempt.execute(call)
    found = explain_in_order(BANK, proven, LocalRunner(make()), attempt.transcript)
    return None if found is None else [fault.id for fault in found]


@pytest.mark.parametrize(
    ("proven", "names", "expected"),
    [
        pytest.param({"remembers"}, lambda: make(remembers=True), ["remembers"], id="alone"),
        pytest.param({"remembers"}, lambda: make(remembers=True, factor=2.0), ["remembers", "doubled"], id="beside another"),
        pytest.param({"remembers"}, lambda: make(remembers=True, factor=3.0), None, id="beside one that nobody listed"),
        pytest.param(set(), lambda: make(remembers=True, factor=2.0), None, id="not proved"),
        pytest.param({"doubled"}, lambda: make(factor=2.0, shift=1.0), None, id="call by call, which is the search's"),
    ],
)  # fmt: skip
def test_what_remembers_earlier_calls_is_replayed_from_new(
    proven: set[str], names: Callable[[], Mapping[str, object]], expected: list[str] | None
) -> None:
    for _ in range(2):  # the bank's own mutants are as they were
        assert explained(proven, names()) == expected
