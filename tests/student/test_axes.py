"""Sizes get the names that the signature gives them; what could be two things gets none."""

import pytest
import torch

from manyheads.box.worker.messages import Build, Call, StandIn
from manyheads.course.shapes import parse_signature
from manyheads.judge.axes import Axes, axes_of
from manyheads.student.choose_example import SAME, ambiguity_of
from manyheads.student.explain_trace import number_in_words

SPLIT = parse_signature("(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)")
MODULE = parse_signature("(n_embd: nh * hd, n_head: nh, block_size)(x: (B, T, C)) -> (B, T, C)")
X = torch.zeros(2, 5, 12)


def sizes(axes: Axes | None) -> dict[str, int]:
    return dict(axes.sizes)


@pytest.mark.parametrize(
    "call", [Call("split", (X, 3)), Call("split", (X,), {"n_head": 3}), Call("split", (), {"n_head": 3, "x": X})]
)
def test_arguments_by_position_and_by_name(call: Call) -> None:
    assert sizes(axes_of(SPLIT, call, (2, 3, 5, 4), {})) == {"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4}


def test_an_unknown_of_a_product_is_worked_out() -> None:
    call = Call(Build("M", (12, 3), {"block_size": 9}), (X,))
    found = sizes(axes_of(MODULE, call, (2, 5, 12), {}))
    assert found == {"nh": 3, "hd": 4, "block_size": 9, "B": 2, "T": 5, "C": 12}


@pytest.mark.parametrize("temperature", [0.4, 2.5, 2])
def test_a_number_that_measures_no_axis_may_be_any(temperature: float) -> None:
    signature = parse_signature("(scores: (B, N), temperature: float) -> (B, N)")
    assert sizes(axes_of(signature, Call("f", (X[:, :, 0], temperature)), (2, 5), {})) == {"B": 2, "N": 5}
    assert axes_of(signature, Call("f", (X[:, :, 0],)), (2, 5), {}) is None


def test_a_module_as_an_argument_is_read_as_its_own_entry_says() -> None:
    signature = parse_signature("(module: M, x: (B, T, C)) -> ()")
    call = Call("f", (Build("M", (12, 3, 9)), X))
    assert sizes(axes_of(signature, call, (), {"M": (MODULE,)}))["hd"] == 4


def test_attributes_of_a_stand_in_are_sizes() -> None:
    signature = parse_signature("(mha: {n_head: nh, head_dim: hd}, x: (B, T, C)) -> (B, T, C)")
    call = Call("f", (StandIn({}, {"n_head": 3, "head_dim": 4}), X))
    assert sizes(axes_of(signature, call, (2, 5, 12), {}))["nh"] == 3


@pytest.mark.parametrize(("call", "returned"), [
    pytest.param(Call("split", (torch.zeros(5, 12), 3)), (3, 5, 4), id="another number of axes"),
    pytest.param(Call("split", (X,)), (2, 3, 5, 4), id="an argument that is missing"),
    pytest.param(Call("split", (X, 4)), (2, 3, 5, 4), id="two values for one axis"),
    pytest.param(Call("split", (X, None)), (2, 3, 5, 4), id="no number where one belongs"),
    pytest.param(Call("split", (3, 3)), (2, 3, 5, 4), id="no tensor where one belongs"),
])  # fmt: skip
def test_a_call_that_the_signature_does_not_fit_has_no_axes(call: Call, returned: tuple[int, ...]) -> None:
    assert axes_of(SPLIT, call, returned, {}) is None


@pytest.fixture
def axes() -> Axes:
    call = Call(Build("M", (20, 4, 9)), (torch.zeros(2, 7, 20),))
    found = axes_of(MODULE, call, (2, 7, 20), {})
    assert found is not None
    return found


def test_shapes_read_as_the_lesson_writes_them(axes: Axes) -> None:
    assert axes.shape((2, 7, 20)) == "(B, T, C)"
    assert axes.shape((2, 4, 7, 5)) == "(B, nh, T, hd)"
    assert axes.shape((14, 60, 8, 1, 1234)) == "(B·T, 3·C, B·nh, 1, 1234)"
    assert axes.shape(()) == "()"


def test_an_axis_that_could_be_two_things_has_no_name() -> None:
    call = Call("split", (torch.zeros(2, 3, 12), 3))
    found = axes_of(SPLIT, call, (2, 3, 3, 4), {})
    assert found.shape((2, 3, 3, 4)) == "(B, 3, 3, hd)"
    assert ambiguity_of(found) >= SAME


@pytest.mark.parametrize(
    ("value", "shown"),
    [(5**0.5, "2.236 (√hd)"), (20**0.5, "4.472 (√C)"), (5**-0.5, "0.4472 (1/√hd)"), (5.0, "5 (hd)"), (2.0, "2 (√nh)"), (0.05, "0.05 (1/C)"), (8.0, "8")],
)  # fmt: skip
def test_a_number_is_named_by_what_it_could_be(axes: Axes, value: float, shown: str) -> None:
    assert number_in_words(axes, value) == shown
