"""Signatures with named axes, as course.yaml writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.box.worker.form import Form
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


def test_several_results_have_names_and_shapes() -> None:
    signature = parse_signature("(x: (B, T), state: opaque) -> (y: (B, T), state: opaque)")
    assert signature.form == Form("tuple", ("y", "state"), (Form(), Form("opaque")))
    assert signature.shapes == (((0,), signature.returns),)
    assert signature.call[1] == Parameter("state", may_lack=True)


@pytest.mark.parametrize(
    ("returned", "form"),
    [
        ("((B, T), (B,))", Form("tuple", (), (Form(), Form()))),
        ("[(B, T), opaque]", Form("tuple", (), (Form(), Form("opaque")))),
        ("(mean: (T,), last: (T,) | None)", Form("tuple", ("mean", "last"), (Form(), Form()))),
        ("(y: (T,), parts: ((), None))", Form("tuple", ("y", "parts"), (Form(), Form("tuple", (), (Form(), Form()))))),
        ("opaque", Form("opaque")),
    ],
)  # fmt: skip
def test_what_is_returned_may_be_any_structure(returned: str, form: Form) -> None:
    assert parse_signature(f"(x: (B, T)) -> {returned}").form == form


@pytest.mark.parametrize("text", [
    pytest.param("", id="nothing"),
    pytest.param("x", id="no brackets"),
    pytest.param("(x: (B, T)", id="a bracket that is not closed"),
    pytest.param("(x: (B, T))", id="nothing comes back"),
    pytest.param("(x: (B, T)) -> T", id="a shape without brackets"),
    pytest.param("(x: (B, T)) -> []", id="a structure without parts"),
    pytest.param("(x: (B, T)) -> {mean: (T,)}", id="a dict"),
    pytest.param("(x: (B, T)) -> Stats(mean=(T,))", id="an object"),
    pytest.param("(x: (B, T)) -> (y: (B,), z)", id="a result without a shape"),
    pytest.param("(x)(y)(z) -> ()", id="three pairs of brackets"),
    pytest.param("(x: (B, T + 1)) -> (T,)", id="a sum"),
    pytest.param("(x: ('B',)) -> (B,)", id="text"),
    pytest.param("(*x: (B,)) -> (B,)", id="any number of arguments"),
    pytest.param("(x: (B,) = 1) -> (B,)", id="a default"),
    pytest.param("(x: print('!')) -> (B,)", id="a call"),
    pytest.param("(x: (B,)) -> (B,): pass\nimport os\ndef g()", id="more than a signature"),
])  # fmt: skip
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a signature with named axes, such as"):
        parse_signature(text)


def test_a_function_returns_one_structure(tiny_copy: Path) -> None:
    path = tiny_copy / "course.yaml"
    both = '["(x: (T,)) -> (T,)", "(x: (T,)) -> ((T,), ())"]'
    path.write_text(path.read_text().replace('"(x: (T,)) -> (T,)"', both))
    with pytest.raises(CourseError, match="the signatures of running_mean return different structures"):
        load_course(tiny_copy)


def test_course_yaml_is_told_the_line(tiny_copy: Path) -> None:
    path = tiny_copy / "course.yaml"
    path.write_text(path.read_text().replace("(x: (T,)) -> (T,)", "(x: (T,)"))
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "running_mean:" in text)
    with pytest.raises(CourseError, match=f"course.yaml:{line}: .*is not a signature"):
        load_course(tiny_copy)
