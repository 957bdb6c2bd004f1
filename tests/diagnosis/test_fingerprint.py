"""What the fingerprint of a reply keeps, and which calls and replies can be compared."""

from dataclasses import replace

import torch

from manyheads.box.worker.messages import (
    Build,
    Call,
    DeviceArgument,
    ModuleFacts,
    Operations,
    Output,
    Raised,
    Reply,
)
from manyheads.diagnosis.fingerprint import (
    LARGEST,
    TensorFingerprint,
    comparable_fingerprint,
    fingerprint_of,
    has_no_numbers,
    is_comparable,
    replies_agree,
    tensor_fingerprint,
)
from tests.make import cases

X = torch.ones(2, 3, dtype=torch.float64)
ANSWER = Reply((Output("tensor", X, "float64", "cpu", (2, 3)),), {"args.0": X})
ON_META = Reply((Output("tensor", None, "float64", "meta", (2, 3)),))


def exception(name: str, message: str = "no", stage: str = "call") -> Reply:
    return Reply(raised=Raised(name, (name, "Exception"), message, stage, 3))


SIZES = "The size of tensor a (3) must match the size of tensor b (4)"
REFUSAL = exception("ValueError")
UNKNOWN = exception("KeyError")
MISFIT = exception("RuntimeError", SIZES)
OTHER_SIZES = exception("RuntimeError", SIZES.replace("4", "5"))


@cases(
    "call, can_be_compared",
    {
        "a function": (Call("f", (X,)), True),
        "a module in eval mode": (Call(Build("F", state={}), (X,)), True),
        "a module in training mode": (Call(Build("F", state={}, training=True)), False),
        "a module on the meta device": (Call(Build("F", state={}, device="meta")), False),
        "a module on a GPU": (Call(Build("F", state={}, device="cuda")), False),
        "a module that draws its weights": (Call(Build("F"), (X,)), False),
        "a tensor without numbers": (Call("f", (X.to("meta"),)), False),
        "a GPU as an argument": (Call("f", (DeviceArgument("cuda"),)), False),
        "the CPU as an argument": (Call("f", (DeviceArgument("cpu"),)), True),
        "dropout": (Call("f", (X,), random=True), False),
        "another dtype": (Call("f", (X,), dtype="float32"), False),
    },
)
def test_the_reply_to_a_call_can_be_compared_with(call, can_be_compared):
    assert is_comparable(call) is can_be_compared


@cases(
    "a, b, agree",
    {
        "the same numbers": (ANSWER, replace(ANSWER), True),
        "another gradient": (ANSWER, replace(ANSWER, gradients={"args.0": 2 * X}), False),
        "a number and an exception": (ANSWER, REFUSAL, False),
        "an exception and a number": (MISFIT, ANSWER, False),
        "two refusals": (REFUSAL, exception("AssertionError"), True),
        "the same kind of exception": (MISFIT, OTHER_SIZES, True),
        "two kinds of exceptions": (REFUSAL, MISFIT, False),
        "the same exception of unknown kind": (UNKNOWN, UNKNOWN, False),
    },
)
def test_two_replies_agree_with(a, b, agree):
    assert replies_agree(a, b) is agree


@cases(
    "a, b, agree, same",
    {
        "a refusal": (REFUSAL, REFUSAL, True, True),
        "a known kind of exception": (MISFIT, MISFIT, True, True),
        "two sizes in the message": (MISFIT, OTHER_SIZES, False, False),
        "an exception of unknown kind": (UNKNOWN, UNKNOWN, False, True),
        "an exception and a number": (REFUSAL, ANSWER, False, False),
    },
)
def test_fingerprints_of_exceptions_agree_or_are_the_same_with(a, b, agree, same):
    first, second = fingerprint_of(a), fingerprint_of(b)
    assert first.agrees(second, ("outputs",)) is agree
    assert first.is_same(second) is same


@cases(
    "sizes, shapes, square",
    {
        "one of (T, T)": ((3, 2), ((3, 3),), True),
        "one of (T, T + 1)": ((3, 2), ((3, 4),), True),
        "one of T * T numbers": ((3, 2), ((9,),), True),
        "one of (2, 2)": ((2, 1), ((2, 2),), True),
        "one of (T, 2)": ((3, 2), ((3, 2), (0,)), False),
        "a single number in each": ((1, 1), ((1, 1),), False),
    },
)
def test_a_square_is_told_from_the_shapes_on_the_way(sizes, shapes, square):
    reply = Reply(
        (Output("tensor", torch.ones(sizes), "float32", "cpu", sizes),),
        operations=Operations(fused=False, shapes=shapes),
    )
    assert fingerprint_of(reply).square is square


def test_a_tensor_that_is_too_large_has_only_its_number_of_values():
    tensor = X[0, :1].expand(LARGEST + 1)
    assert tensor_fingerprint(tensor) == TensorFingerprint(
        "tensor", (LARGEST + 1,), f"{LARGEST + 1} numbers", (0.0, 0.0, 0.0)
    )


def test_the_attributes_of_a_module_stand_beside_its_state_if_some_are_asked_for():
    module = ModuleFacts({}, {}, training=True, changed=False, unloaded=(), attributes={"heads": 2})
    operations = Operations(fused=False, recorded=True)
    assert fingerprint_of(Reply(modules=(module,), operations=operations)).attributes == {
        "heads": "2",
        "its mode": "training=True",
        "its weights": "changed=False",
        "gradients": "recorded=True",
    }
    nothing_asked = Reply(modules=(replace(module, attributes={}),), operations=operations)
    assert fingerprint_of(nothing_asked).attributes == {}


def test_a_reply_without_a_module_or_operations_has_none_of_their_facts():
    fingerprint = fingerprint_of(ANSWER)
    assert (fingerprint.parameters, fingerprint.attributes) == ({}, {})
    assert (fingerprint.fused, fingerprint.softmax, fingerprint.square) == (False,) * 3


def test_a_reply_on_the_meta_device_has_no_numbers_and_is_compared_by_their_absence():
    expected = fingerprint_of(ON_META)
    assert has_no_numbers(expected) is True
    assert has_no_numbers(fingerprint_of(ANSWER)) is False
    call = Call("f", (X.to("meta"),))
    with_numbers = comparable_fingerprint(expected, call, ANSWER)
    assert not with_numbers.agrees(expected, ("outputs",))
    doubled = replace(ANSWER, outputs=(replace(ANSWER.outputs[0], tensor=2 * X),))
    assert with_numbers.agrees(comparable_fingerprint(expected, call, doubled), ("outputs",))
    right = comparable_fingerprint(expected, call, ON_META)
    assert right.agrees(expected, ("outputs",))
