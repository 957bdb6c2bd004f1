"""Signatures with named axes, as course.yaml writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, load_course
from manyheads.course.shapes import Axis, Parameter, Signature, parse_signature


def test_a_function() -> None:
    assert parse_signature("(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)") == Signature(
        call=(
            Parameter("x", shape=(Axis(("B",)), Axis(("T",)), Axis(("C",)))),
            Parameter("n_head", axis=Axis(("nh",))),
        ),
        returns=(Axis(("B",)), Axis(("nh",)), Axis(("T",)), Axis(("hd",))),
    )


def test_a_class_has_a_constructor_and_products() -> None:
    signature = parse_signature("(n_embd: nh * hd, block_size)(x: (3 * B,)) -> ()")
    assert signature.build == (
        Parameter("n_embd", axis=Axis(("nh", "hd"))),
        Parameter("block_size", axis=Axis(("block_size",))),
    )
    assert signature.call == (Parameter("x", shape=(Axis((3, "B")),)),)
    assert signature.returns == ()


def test_a_number_may_measure_no_axis() -> None:
    _, temperature = parse_signature("(scores: (B, N), temperature: float) -> (B, N)").call
    assert temperature == Parameter("temperature")


def test_an_object_has_attributes() -> None:
    (mha,) = parse_signature("(mha: {n_head: nh, head_dim: hd}) -> ()").call
    assert mha.attributes == (("n_head", Axis(("nh",))), ("head_dim", Axis(("hd",))))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("x", id="no brackets"),
        pytest.param("(x: (B, T)", id="a bracket that is not closed"),
        pytest.param("(x: (B, T))", id="nothing comes back"),
        pytest.param("(x: (B, T)) -> T", id="a shape without brackets"),
        pytest.param("(x: (B, T + 1)) -> (T,)", id="a sum"),
        pytest.param("(x: ('B',)) -> (B,)", id="text"),
        pytest.param("(*x: (B,)) -> (B,)", id="any number of arguments"),
        pytest.param("(x: (B,) = 1) -> (B,)", id="a default"),
        pytest.param("(x: print('!')) -> (B,)", id="a call"),
        pytest.param("(x: (B,)) -> (B,): pass\nimport os\ndef g()", id="more than a signature"),
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a signature with named axes, such as"):
        parse_signature(text)


def test_course_yaml_is_told_the_line(tiny_copy: Path) -> None:
    path = tiny_copy / "course.yaml"
    path.write_text(path.read_text().replace("(x: (T,)) -> (T,)", "(x: (T,)"))
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "running_mean:" in text)
    with pytest.raises(CourseError, match=f"course.yaml:{line}: .*is not a signature"):
        load_course(tiny_copy)
