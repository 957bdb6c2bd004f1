"""The sentence about an exception explains PyTorch's message and never repeats a student's."""

import pytest
import torch

from manyheads.box.worker.answer_call import raised_by
from manyheads.box.worker.messages import Raised
from manyheads.checks.explain_exceptions import (
    explain,
    is_dtype_fault,
    kind_of,
    sanitize,
    says_unwritten,
)

A_LAYER = "a layer is used where a tensor is expected"
MATCH = "The size of tensor a (5) must match the size of tensor b (8) at dimension 3"


def raised_record(exc_type, message, line=12, base="Exception"):
    """Return the record of an exception; `line` is the line of the attempt that raised it."""
    return Raised(exc_type, (exc_type, base, "BaseException"), message, "call", line)


@pytest.mark.parametrize(
    ("exc_type", "message", "sentence"),
    [
        (
            "RuntimeError",
            "view size is not compatible with input tensor's size and stride",
            "raised RuntimeError on line 12: a .view of a tensor",
        ),
        (
            "RuntimeError",
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
            "shapes cannot be multiplied",
        ),
        ("RuntimeError", MATCH, "two tensors whose shapes do not fit each other"),
        ("AttributeError", "cannot assign module before Module.__init__() call", "before super"),
        ("AttributeError", "'Linear' object has no attribute 'view'", A_LAYER),
        ("TypeError", "unsupported operand type(s) for @: 'Tensor' and 'Linear'", A_LAYER),
        (
            "TypeError",
            "dropout(): argument 'input' (position 1) must be Tensor, not Linear",
            A_LAYER,
        ),
        (
            "TypeError",
            "masked_fill() received an invalid combination of arguments - got (Linear, float)",
            A_LAYER,
        ),
        ("TypeError", "cannot unpack non-iterable Linear object", A_LAYER),
        (
            "RuntimeError",
            "Tensor type unknown to einops <class 'torch.nn.modules.linear.Linear'>",
            A_LAYER,
        ),
        ("Sneaky", "0.123 0.456", "raised Exception on line 12"),
    ],
)
def test_an_exception_is_explained(exc_type, message, sentence):
    assert sentence in explain(raised_record(exc_type, message))


def test_the_exception_of_a_stub_means_not_written_yet():
    stub = raised_record("NotImplementedError", "", base="RuntimeError")
    assert says_unwritten(stub)
    assert "nothing is written here yet" in explain(stub)


def test_a_students_message_is_not_repeated():
    # an attempt could put a hidden input into its message
    assert "0.123" not in explain(raised_record("ValueError", "hidden input 0.123"))


MASK, NUMBERS = torch.ones(3, 3, dtype=torch.bool), torch.ones(3, 3)
META = torch.ones(3, 2, device="meta")
SINGLE, DOUBLE = torch.ones(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.float64)


def exception_of(operation):
    """Return the exception that PyTorch raises for this expression."""
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        eval(operation)
    return raised_by(caught.value, "call", "")


@pytest.mark.parametrize(
    ("operation", "sentence", "misconception"),
    [
        ("MASK.softmax(-1)", "PyTorch does not have for this dtype", None),
        ("NUMBERS & NUMBERS", "where a bool one is needed", "mask_not_bool"),
        ("META[META > 0]", "does not have for this kind of tensor", None),
        ("NUMBERS.cfloat().clamp(0)", "for this kind of tensor", None),
        ("META.cpu()", "on a device that keeps none", None),
    ],
)
def test_not_implemented_error_of_pytorch_is_not_an_unwritten_function(
    operation, sentence, misconception
):
    """PyTorch raises NotImplementedError, as a stub does."""
    error = exception_of(operation)
    assert sentence in explain(error)
    assert kind_of(error).misconception == misconception
    assert not says_unwritten(error)


@pytest.mark.parametrize(
    "operation",
    [
        "SINGLE @ DOUBLE",
        "torch.baddbmm(SINGLE, DOUBLE, DOUBLE)",
        "torch.addmm(SINGLE[0], DOUBLE[0], DOUBLE[0])",
        "SINGLE.lerp(DOUBLE, 0.5)",
    ],
)
def test_an_error_about_two_dtypes_is_recognized(operation):
    assert is_dtype_fault(exception_of(operation))


def test_a_wrong_argument_is_an_interface_mistake_only_outside_the_attempt():
    message = "softmax() got an unexpected keyword argument 'axes'"
    assert kind_of(raised_record("TypeError", message, line=3)) is None
    assert kind_of(raised_record("TypeError", message, line=None)).misconception == "interface"


@pytest.mark.parametrize(
    ("text", "sanitized"),
    [
        ("a\nb\x1b[31m\x00c", "a b [31m c"),
        ("::error::x", ":error:x"),  # a command to a CI runner
        ("x" * 400, "x" * 299 + "…"),
        ("√head_dim … ok", "√head_dim … ok"),
    ],
)
def test_a_text_of_an_attempt_is_sanitized(text, sanitized):
    assert sanitize(text) == sanitized
