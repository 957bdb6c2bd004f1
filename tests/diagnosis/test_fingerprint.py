"""The fingerprint of a reply, and the calls and replies that can be compared."""

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
    """Return the reply of an attempt that raised this exception type.

    stage: "call" for the function itself, "build" for the module's constructor.
    """
    return Reply(raised=Raised(name, (name, "Exception"), message, stage, 3))


SIZES = "The size of tensor a (3) must match the size of tensor b (4)"
REFUSAL = exception("ValueError")
UNKNOWN_KIND = exception("KeyError")
SIZE_ERROR = exception("RuntimeError", SIZES)
OTHER_SIZE_ERROR = exception("RuntimeError", SIZES.replace("4", "5"))


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
def test_a_call_is_comparable_if_its_reply_is_deterministic_and_on_the_cpu(call, can_be_compared):
    assert is_comparable(call) is can_be_compared


@cases(
    "a, b, agree",
    {
        "the same numbers": (ANSWER, replace(ANSWER), True),
        "another gradient": (ANSWER, replace(ANSWER, gradients={"args.0": 2 * X}), False),
        "an output and an exception": (ANSWER, REFUSAL, False),
        "an exception and an output": (SIZE_ERROR, ANSWER, False),
        "two refusals": (REFUSAL, exception("AssertionError"), True),
        "the same kind of exception": (SIZE_ERROR, OTHER_SIZE_ERROR, True),
        "two kinds of exceptions": (REFUSAL, SIZE_ERROR, False),
        "the same exception of unknown kind": (UNKNOWN_KIND, UNKNOWN_KIND, False),
    },
)
def test_replies_agree_if_their_numbers_or_kinds_of_exceptions_agree(a, b, agree):
    assert replies_agree(a, b) is agree


@cases(
    "a, b, agree, is_same",
    {
        "a refusal": (REFUSAL, REFUSAL, True, True),
        "a known kind of exception": (SIZE_ERROR, SIZE_ERROR, True, True),
        "two sizes in the message": (SIZE_ERROR, OTHER_SIZE_ERROR, False, False),
        "an exception of unknown kind": (UNKNOWN_KIND, UNKNOWN_KIND, False, True),
        "an exception and an output": (REFUSAL, ANSWER, False, False),
    },
)
def test_fingerprints_of_exceptions_agree_only_for_a_known_kind_and_equal_sizes(
    a, b, agree, is_same
):
    first, second = fingerprint_of(a), fingerprint_of(b)
    assert first.agrees(second, ("outputs",)) is agree
    assert first.is_same(second) is is_same


@cases(
    "input_shape, intermediate_shapes, has_square",
    {
        "one of (T, T)": ((3, 2), ((3, 3),), True),
        "one of (T, T + 1)": ((3, 2), ((3, 4),), True),
        "one of T * T numbers": ((3, 2), ((9,),), True),
        "one of (2, 2)": ((2, 1), ((2, 2),), True),
        "one of (T, 2)": ((3, 2), ((3, 2), (0,)), False),
        "a single number in each": ((1, 1), ((1, 1),), False),
    },
)
def test_a_square_matrix_is_recognised_by_the_intermediate_shapes(
    input_shape, intermediate_shapes, has_square
):
    reply = Reply(
        (Output("tensor", torch.ones(input_shape), "float32", "cpu", input_shape),),
        operations=Operations(fused=False, shapes=intermediate_shapes),
    )
    assert fingerprint_of(reply).square is has_square


def test_a_tensor_that_is_too_large_keeps_only_its_number_of_values():
    tensor = X[0, :1].expand(LARGEST + 1)
    assert tensor_fingerprint(tensor) == TensorFingerprint(
        "tensor", (LARGEST + 1,), f"{LARGEST + 1} numbers", (0.0, 0.0, 0.0)
    )


def test_attributes_and_state_of_a_module_are_kept_if_attributes_are_requested():
    module = ModuleFacts({}, {}, training=True, changed=False, unloaded=(), attributes={"heads": 2})
    operations = Operations(fused=False, recorded=True)
    assert fingerprint_of(Reply(modules=(module,), operations=operations)).attributes == {
        "heads": "2",
        "its mode": "training=True",
        "its weights": "changed=False",
        "gradients": "recorded=True",
    }
    without_attributes = Reply(modules=(replace(module, attributes={}),), operations=operations)
    assert fingerprint_of(without_attributes).attributes == {}


def test_a_reply_without_module_and_operations_has_empty_fields_for_them():
    fingerprint = fingerprint_of(ANSWER)
    assert (fingerprint.parameters, fingerprint.attributes) == ({}, {})
    assert (fingerprint.fused, fingerprint.softmax, fingerprint.square) == (False,) * 3


def test_a_reply_on_the_meta_device_differs_from_one_with_numbers():
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
