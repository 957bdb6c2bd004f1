"""A reply that is the reference's to the last bit has its fingerprint, and no other reply is taken for it."""

import dataclasses

import pytest
import torch

from manyheads.authoring.record_calls import is_same_reply
from manyheads.box.worker.answers import Entry, ModuleFacts, Operations, Output, Raised, Reply
from manyheads.diagnosis.fingerprint import ReplyFingerprint, fingerprint_of

ONES = torch.ones(2, dtype=torch.float64)
FACTS = ModuleFacts({"w": Entry((2,), "float32", "cpu")}, {}, True, False, (), {"heads": 2})
REPLY = Reply(
    outputs=(Output("tensor", ONES, "float64", "cpu", (2,)),),
    gradients={"args.0": ONES, "args.1": None},
    modules=(FACTS,),
    operations=Operations(fused=False),
)
RAISED = Raised("ValueError", ("ValueError",), "no", "call", None)
OTHERS = [
    pytest.param({"outputs": (Output("tensor", 2 * ONES, "float64", "cpu", (2,)),)}, id="another output"),
    pytest.param({"outputs": (Output("tensor", ONES * torch.nan, "float64", "cpu", (2,)),)}, id="no number"),
    pytest.param({"outputs": REPLY.outputs * 2}, id="one output more"),
    pytest.param({"outputs": (Output("tensor", ONES, "float32", "cpu", (2,)),)}, id="another dtype"),
    pytest.param({"gradients": {"args.0": 2 * ONES, "args.1": None}}, id="another gradient"),
    pytest.param({"gradients": {"args.0": ONES, "args.1": ONES}}, id="a gradient that the other lacks"),
    pytest.param({"gradients": {"args.0": ONES}}, id="no such gradient"),
    pytest.param({"mutated": ("args.0",)}, id="an argument changed in place"),
    pytest.param({"modules": (dataclasses.replace(FACTS, attributes={"heads": 4}),)}, id="another attribute"),
    pytest.param({"modules": (dataclasses.replace(FACTS, parameters={}),)}, id="a parameter less"),
    pytest.param({"operations": Operations(fused=True)}, id="the fused function"),
    pytest.param({"operations": Operations(fused=False, kernels=("_softmax",))}, id="a softmax"),
    pytest.param({"operations": Operations(fused=False, shapes=((2, 2),))}, id="a square on the way"),
    pytest.param({"raised": RAISED}, id="an exception"),
]


def test_a_copy_is_the_same() -> None:
    again = dataclasses.replace(REPLY, gradients={"args.0": ONES.clone(), "args.1": None})
    assert is_same_reply(REPLY, again)


@pytest.mark.parametrize("changes", OTHERS)
def test_what_has_another_fingerprint_is_another_reply(changes: dict[str, object]) -> None:
    other = dataclasses.replace(REPLY, **changes)  # type: ignore[arg-type]
    assert fingerprint_of(other) != fingerprint_of(REPLY)
    assert not is_same_reply(REPLY, other)


def test_all_that_a_fingerprint_has_is_looked_at() -> None:
    """What is added to recording, and not here, is recorded as the reference's where the numbers are the same."""
    changed = [fingerprint_of(dataclasses.replace(REPLY, **case.values[0])) for case in OTHERS]  # type: ignore[arg-type]
    right = fingerprint_of(REPLY)
    fields = [each.name for each in dataclasses.fields(ReplyFingerprint)]
    assert {name for each in changed for name in fields if getattr(each, name) != getattr(right, name)} == {*fields}
