"""Structures made to deceive: they earn nothing, tell nothing, and break nothing but their own process."""

import pytest
import torch

from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.messages import Call
from manyheads.checks.answer import Answer
from manyheads.checks.outcome import CheckFailed
from manyheads.checks.sanitize import kind_name
from tests.structures.conftest import Scored

ATTEMPT = """\
import torch
from dataclasses import dataclass
from torch import nn

class Lies(tuple):
    def __iter__(self):
        raise SystemExit(0)

    def __len__(self):
        return 2

    def __eq__(self, other):
        return True

class Endless(dict):
    def get(self, name, default=None):
        return self

    def __getitem__(self, name):
        return self

    def __missing__(self, name):
        return self

class Pretends:
    __class__ = tuple

    def __iter__(self):
        return iter((torch.ones(1), None))

class Bomb:
    def __del__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")

def named(name):
    return type(name, (), {})()

def knot():
    held = []
    held.append(held)
    return held

class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        return %s
"""


@pytest.mark.parametrize(("returned", "says"), [
    ("Lies((x,))", "a pair (y, cache) was expected; yours returned a tuple of 1"),
    ("Lies((x, None))", "values differ"),
    ("Endless()", "yours returned a dict"),
    ("Pretends()", "yours returned an object of another type"),
    ("(x,) * 3_000_000", "yours returned a tuple of 9 or more"),
    ("knot()", "yours returned a list of 1"),
    ("(knot(), knot())", "a tensor was expected as y; yours returned a list"),
    ("(Bomb(), Bomb())", "a tensor was expected as y; yours returned an object of another type"),
    ("named('without y')", "yours returned an object of another type"),
    ("(named('in place of 0: a secret'), None)", "yours returned an object of another type"),
    ("(named('in place of 77: a secret'), None)", "yours returned an object of another type"),
    ("(named('(opaque)'), None)", "something that is not an answer"),
])  # fmt: skip
def test_a_structure_that_lies_earns_nothing(scored: Scored, returned: str, says: str) -> None:
    result = scored(ATTEMPT % returned)
    told = " ".join(check.evidence for check in result.checks)
    assert any(part in told for part in says.split("|")), told
    assert result.score <= (1.5 if returned == "Lies((x, None))" else 0)  # which is a pair of the right shape
    assert "secret" not in told
    assert {check.outcome for check in result.checks} <= {"passed", "failed", "error", "crashed"}


def test_a_cache_that_is_too_large_costs_its_own_checks(scored: Scored) -> None:
    result = scored(ATTEMPT % "(x, torch.ones(1 << 33))")
    assert result.score == 0
    assert {check.outcome for check in result.checks} <= {"error", "crashed", "failed"}


@pytest.mark.parametrize(
    "kind",
    ["tuple of 57", "tuple of \u0669", "list of \U0001d7d7", "sparse_31415 float32 tensor", "strided a_secret tensor"],
)
def test_a_name_that_is_a_message_is_not_told(kind: str) -> None:
    assert kind_name(kind) == "an object of another type"


@pytest.mark.parametrize("kind", ["sparse_coo float32 tensor", "strided complex64 tensor", "jagged float32 tensor"])
def test_a_tensor_of_another_layout_is_told(kind: str) -> None:
    assert kind_name(kind) == f"a {kind}"


@pytest.mark.parametrize("tensor", [None, torch.ones(1)], ids=["a type named after a dtype", "a forged reply"])
def test_what_has_no_dtype_cannot_name_one(tensor: torch.Tensor | None) -> None:
    answer = Answer(Call("f"), Reply((Output("float32", tensor, shape=(1,)),)))
    with pytest.raises(CheckFailed, match="a tensor was expected; yours returned an object of another type"):
        assert answer.dtype
