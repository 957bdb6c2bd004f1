"""Trusted code in an attempt's place."""

from __future__ import annotations

import dataclasses

import torch

from manyheads.box.worker.messages import Call
from manyheads.checks.local import CachedRunner

X = torch.ones(2, dtype=torch.float64)


def test_the_same_call_is_worked_out_once_and_its_like_anew() -> None:
    asked: list[float] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        asked.append(1)
        return x + len(asked)

    reference, call = CachedRunner({"f": f}), Call("f", (X,))
    assert reference.execute(call) is reference.execute(call)
    assert len(asked) == 1
    reference.execute(dataclasses.replace(call))
    assert len(asked) == 2
