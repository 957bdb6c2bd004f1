"""What is due is known for each part, so that None as one part does not excuse None as another."""

from __future__ import annotations

import torch

from manyheads.box.worker.form import Form
from manyheads.box.worker.messages import Build, Call
from manyheads.checks.implementation import LocalRunner
from manyheads.judge.require_answer import kinds_of


class Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return x, None


def test_a_call_that_only_builds_says_nothing_of_the_parts() -> None:
    build, pair = Build("Module"), Form("tuple", ("y", "rest"), (Form(), Form()))
    calls = [Call(build, only_build=True), Call(build, (torch.ones(2),), returns=pair)]
    assert kinds_of(calls, LocalRunner({"Module": Module})) == (frozenset({"tensor"}), frozenset({"NoneType"}))
