"""Signatures with named axes, as course.yaml writes them."""

from pathlib import Path

import pytest

from manyheads.box.worker.form import Form
from manyheads.course import CourseError, load_course
from manyheads.course.shapes import Axis, Parameter, Signature, parse_signature

B, T, NH, HD = (Axis((name,)) for name in ("B", "T", "nh", "hd"))
STATE = Form("tuple", ("y", "state"), (Form(), Form("opaque")))


@pytest.mark.parametrize(("text", "signature"), [
    ("(x: (B, T), n_head: nh) -> (B, nh, T, hd)",
     Signature((Parameter("x", (B, T)), Parameter("n_head", axis=NH)), (B, NH, T, HD))),
    ("(n_embd: nh * hd, T)(x: (3 * B,)) -> ()",
     Signature((Parameter("x", (Axis((3, "B")),)),), (), (Parameter("n_embd", axis=Axis(("nh", "hd"))), Parameter("T", axis=T)))),
    ("(mask: (B, T) | None, scale: float) -> (T,)",
     Signature((Parameter("mask", (B, T), may_lack=True), Parameter("scale")), (T,))),
    ("(mha: {n_head: nh, head_dim: hd}) -> ()",
     Signature((Parameter("mha", attributes=(("n_head", NH), ("head_dim", HD))),), ())),
    ("(x: (B, T), state: opaque) -> (y: (B, T), state: opaque)",
     Signature((Parameter("x", (B, T)), Parameter("state", may_lack=True)), (B, T), None, STATE, (((0,), (B, T)),))),
])  # fmt: skip
def test_a_signature_has_axes(text: str, signature: Signature) -> None:
    assert parse_signature(text) == signature


@pytest.mark.parametrize(("returned", "form"), [
    ("((B, T), (B,))", Form("tuple", (), (Form(), Form()))),
    ("[(B, T), opaque]", Form("tuple", (), (Form(), Form("opaque")))),
    ("(mean: (T,), last: (T,) | None)", Form("tuple", ("mean", "last"), (Form(), Form()))),
    ("(y: (T,), parts: ((), None))", Form("tuple", ("y", "parts"), (Form(), Form("tuple", (), (Form(), Form()))))),
    ("opaque", Form("opaque")),
])  # fmt: skip
def test_what_is_returned_may_be_any_structure(returned: str, form: Form) -> None:
    assert parse_signature(f"(x: (B, T)) -> {returned}").form == form


@pytest.mark.parametrize("text", [
    "", "x", "(x: (B, T)", "(x: (B, T))", "(x: (B, T)) -> T", "(x: (B, T)) -> []", "(x: (B, T)) -> {mean: (T,)}",
    "(x: (B, T)) -> Stats(mean=(T,))", "(x: (B, T)) -> (y: (B,), z)", "(x)(y)(z) -> ()", "(x: (B, T + 1)) -> (T,)",
    "(x: ('B',)) -> (B,)", "(*x: (B,)) -> (B,)", "(x: (B,) = 1) -> (B,)", "(x: print('!')) -> (B,)", "f(x) -> (B,)",
    "(x: (B,)) junk -> (B,)", "(x: (B,)) -> (B,): pass\nimport os\ndef g()", "(x: " + "(" * 5000 + ") -> ()",
])  # fmt: skip
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a signature with named axes, such as"):
        parse_signature(text)


@pytest.mark.parametrize(("old", "new", "says"), [
    ('"(x: (T,)) -> (T,)"', '["(x: (T,)) -> (T,)", "(x: (T,)) -> ((T,), ())"]', "the signatures of running_mean return different"),
    ("(x: (T,)) -> (T,)", "(x: (T,)", "is not a signature"),
])  # fmt: skip
def test_course_yaml_is_told_the_line(tiny_copy: Path, old: str, new: str, says: str) -> None:
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace(old, new, 1)
    path.write_text(text)
    line = text[: text.index(new)].count("\n") + 1
    with pytest.raises(CourseError, match=f"course.yaml:({line}|{line - 1}): .*{says}"):
        load_course(tiny_copy)
