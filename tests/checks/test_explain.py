"""What an exception of PyTorch's own means: it is no stub that nobody has written, though it may have the same type."""

from collections.abc import Callable

import pytest
import torch

from manyheads.box.worker.answers import Raised
from manyheads.checks.explain import is_dtype_fault, kind_of, says_unwritten

META = {"device": "meta"}


def raised_by(function: Callable[[], object]) -> Raised:
    """What a call raises, as the box tells it."""
    with pytest.raises(RuntimeError) as caught:  # of which the other is a kind
        function()
    bases = tuple(base.__name__ for base in type(caught.value).__mro__)
    return Raised(type=type(caught.value).__name__, bases=bases, message=str(caught.value), stage="call", line=7)


@pytest.mark.parametrize("function", [
    pytest.param(lambda: torch.ones(3, 2, **META)[torch.ones(3, **META) > 0], id="rows chosen by a bool tensor"),
    pytest.param(lambda: torch.ones(3, **META).cpu(), id="copied from a device without numbers"),
    pytest.param(lambda: torch.ones(3, dtype=torch.complex64).clamp(0), id="an operation that a dtype does not have"),
    pytest.param(lambda: torch.ones(3, dtype=torch.bool).softmax(0), id="a softmax of bool"),
])  # fmt: skip
def test_pytorch_s_own_exceptions_are_not_an_unwritten_stub(function: Callable[[], object]) -> None:
    raised = raised_by(function)
    assert not says_unwritten(raised)
    assert kind_of(raised) is not None


def test_a_stub_s_own_exception_is() -> None:
    def stub() -> None:
        raise NotImplementedError()

    assert says_unwritten(raised_by(stub))


ONE, TWO = torch.ones(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.float64)


@pytest.mark.parametrize("function", [
    pytest.param(lambda: ONE @ TWO, id="a product"),
    pytest.param(lambda: torch.baddbmm(ONE, TWO, TWO), id="a product with a mask of its own dtype"),
    pytest.param(lambda: torch.addmm(ONE[0], TWO[0], TWO[0]), id="of matrices"),
    pytest.param(lambda: ONE.lerp(TWO, 0.5), id="a mean of two"),
])  # fmt: skip
def test_tensors_of_two_dtypes_are_told_in_whatever_operation(function: Callable[[], object]) -> None:
    assert is_dtype_fault(raised_by(function))
