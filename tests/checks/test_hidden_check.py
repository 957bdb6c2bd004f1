"""Evidence is a sentence with values, which can be rendered in full or with marks."""

import pytest
import torch

from manyheads.checks import CheckFailed, Evidence, Number, Sizes, expect
from manyheads.checks.hidden_check import Draw


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(7, "7", id="a number"),
        pytest.param("head 3 of 4", "head 3 of 4", id="a text"),
        pytest.param("{} {0} {name}", "{} {0} {name}", id="a text with braces"),
        pytest.param((2, 5), "(2, 5)", id="a shape"),
        pytest.param((5,), "(5,)", id="a shape of one axis"),
        pytest.param((), "()", id="the shape of a number"),
        pytest.param((2, 100_001), "(2, …)", id="a shape with a very large size"),
        pytest.param((1,) * 9, "(1, 1, 1, 1, 1, 1, 1, 1, …)", id="a shape of too many axes"),
        pytest.param(Number(1 / 3), "0.3333", id="a factor"),
        pytest.param(Number(1 / 3, digits=2), "0.33", id="a factor with two digits"),
        pytest.param(Number(-1.5e40), "-1.5e+40", id="an enormous factor"),
    ],
)
def test_values_of_evidence_are_shown_in_full(value, text):
    assert str(Evidence("yours has {}, by 0.5%", value)) == f"yours has {text}, by 0.5%"


def test_each_value_of_evidence_can_be_marked():
    evidence = Evidence("{} of {} heads are right", 2, 3)
    with pytest.raises(CheckFailed, match=r"^2 of 3 heads are right$") as failed:
        expect(False, evidence)
    assert failed.value.evidence.render("<{}>".format) == "<2> of <3> heads are right"
    # a plain text counts as one value, because it may contain numbers
    assert CheckFailed("2 of 3").evidence.render("<{}>".format) == "<2 of 3>"


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(B=[2], T=[2]),
        Sizes(B=(2, 3), T=(2, 3), C=[2, 3]),
        Sizes(B=[1], T=[4, 5], C=lambda s, draw: s.B * s.T),
    ],
)
def test_sizes_that_cannot_all_be_different_are_refused(sizes):
    with pytest.raises(ValueError, match=r"^B, T.* are not all different in 10000 draws"):
        sizes(Draw(1))


def test_evidence_takes_no_tensor():
    with pytest.raises(TypeError, match="shows no Tensor: pass a number, a shape or a text"):
        Evidence("{} heads are right", torch.tensor(3))
