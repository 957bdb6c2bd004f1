"""What a student may read: exceptions explained, text made safe to show, inputs that cannot be predicted."""

import pytest
import torch

from manyheads.box.worker.answers import Raised
from manyheads.box.worker.execute import raised_by
from manyheads.checks.draw import Draw, input_seed
from manyheads.checks.explain import explain, is_dtype_fault, kind_of, says_unwritten
from manyheads.checks.sanitize import sanitize


def raised(kind: str, message: str, line: int | None = 12, base: str = "Exception") -> Raised:
    return Raised(kind, (kind, base, "BaseException"), message, "call", line)


@pytest.mark.parametrize(("what", "says"), [
    pytest.param(raised("RuntimeError", "view size is not compatible with input tensor's size and stride"),
        "raised RuntimeError on line 12: a .view of a tensor", id="a view that is not contiguous"),
    pytest.param(raised("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        "shapes cannot be multiplied", id="shapes that cannot be multiplied"),
    *(
        pytest.param(raised(kind, message), "a layer is used where a tensor is due", id=message)
        for kind, message in (
            ("AttributeError", "'Linear' object has no attribute 'view'"),
            ("TypeError", "unsupported operand type(s) for @: 'Tensor' and 'Linear'"),
            ("TypeError", "dropout(): argument 'input' (position 1) must be Tensor, not Linear"),
            ("TypeError", "masked_fill() received an invalid combination of arguments - got (Linear, float)"),
            ("TypeError", "cannot unpack non-iterable Linear object"),
            ("RuntimeError", "Tensor type unknown to einops <class 'torch.nn.modules.linear.Linear'>"),
        )
    ),
    pytest.param(raised("AttributeError", "cannot assign module before Module.__init__() call"), "before super",
        id="a missing super().__init__()"),
    pytest.param(raised("RuntimeError", "The size of tensor a (5) must match the size of tensor b (8) at dimension 3"),
        "two tensors whose shapes do not fit each other", id="shapes that do not fit, of a mask or of anything else"),
    pytest.param(raised("NotImplementedError", "", base="RuntimeError"), "nothing is written here yet", id="a stub"),
    pytest.param(raised("Sneaky", "0.123 0.456"), "raised Exception on line 12",
        id="an exception of the student's own"),
])  # fmt: skip
def test_an_exception_is_explained_with_the_students_line(what, says):
    assert says in explain(what)


OF_PYTORCH = {
    "a softmax of a bool mask": (lambda: MASK.softmax(-1), "PyTorch does not have for this dtype", None),
    "a product of bool masks": (lambda: MASK @ MASK, "PyTorch does not have for this dtype", None),
    "a mask of numbers turned around": (lambda: NUMBERS & NUMBERS, "where a bool one is needed", "mask_not_bool"),
    "a sparse softmax": (lambda: NUMBERS.to_sparse().softmax(-1), "does not have for this kind of tensor", None),
    "rows chosen by a bool tensor": (lambda: META[META > 0], "does not have for this kind of tensor", None),
    "a clamp of complex numbers": (lambda: NUMBERS.cfloat().clamp(0), "for this kind of tensor", None),
    "numbers from nowhere": (lambda: NUMBERS.to("meta").cpu(), "on a device that keeps none", None),
}
MASK, NUMBERS, META = torch.ones(3, 3, dtype=torch.bool), torch.ones(3, 3), torch.ones(3, 2, device="meta")
ONE, TWO = torch.ones(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.float64)


@pytest.mark.parametrize(("asks", "says", "proves"), OF_PYTORCH.values(), ids=OF_PYTORCH)
def test_what_pytorch_does_not_have_is_not_an_unwritten_function(asks, says, proves):
    """It raises NotImplementedError, as a stub does. The exceptions are real: their words are not ours."""
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        asks()
    found = raised_by(caught.value, "call", "")
    assert says in explain(found)
    assert kind_of(found).misconception == proves
    assert not says_unwritten(found)


@pytest.mark.parametrize("asks", [
    pytest.param(lambda: ONE @ TWO, id="a product"),
    pytest.param(lambda: torch.baddbmm(ONE, TWO, TWO), id="a product with a mask of its own dtype"),
    pytest.param(lambda: torch.addmm(ONE[0], TWO[0], TWO[0]), id="of matrices"),
    pytest.param(lambda: ONE.lerp(TWO, 0.5), id="a mean of two"),
])  # fmt: skip
def test_tensors_of_two_dtypes_are_told_in_whatever_operation(asks):
    with pytest.raises(RuntimeError) as caught:
        asks()
    assert is_dtype_fault(raised_by(caught.value, "call", ""))


def test_the_students_message_is_not_repeated():
    assert says_unwritten(raised("NotImplementedError", "", base="RuntimeError"))
    assert "0.123" not in explain(raised("ValueError", "hidden input 0.123"))


def test_an_argument_error_inside_the_students_code_is_not_the_interfaces():
    message = "softmax() got an unexpected keyword argument 'axes'"
    assert kind_of(raised("TypeError", message, line=3)) is None
    assert kind_of(raised("TypeError", message, line=None)).misconception == "interface"


@pytest.mark.parametrize(("text", "shown"), [
    pytest.param("a\nb\x1b[31m\x00c", "a b [31m c", id="control characters are gone"),
    pytest.param("::error::x", ":error:x", id="no command to a CI runner"),
    pytest.param("x" * 400, "x" * 299 + "…", id="cut at 300 characters"),
    pytest.param("√head_dim … ok", "√head_dim … ok", id="ordinary text stays"),
])  # fmt: skip
def test_text_is_made_plain(text, shown):
    assert sanitize(text) == shown


def test_the_same_attempt_meets_the_same_inputs_and_another_meets_others():
    first = input_seed(b"secret", "ada", "exercise", "hash")
    assert first == input_seed(b"secret", "ada", "exercise", "hash")
    asked = ("bob", "exercise", "hash"), ("ada", "exercise", "other"), ("adae", "xercise", "hash")
    others = {input_seed(b"secret", *each) for each in asked}
    assert first not in others
    assert len(others) == 3
    assert first != input_seed(b"another secret", "ada", "exercise", "hash")


def test_sizes_differ_pairwise():
    for seed in range(200):
        sizes = vars(Draw(seed).sizes(B=(2, 4), T=(5, 9), nh=(2, 4), hd=(3, 7)))
        assert len(set(sizes.values())) == 4
