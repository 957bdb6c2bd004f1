"""A followed call as a person reads it."""

from typing import Any

import pytest
import torch

from manyheads.report.trace_text import LEGEND, crop_lines, trace_report
from manyheads.student.explain_trace import Explained, Operation, Repeated, TraceLine
from manyheads.student.origins import OriginTable
from tests import make

VIEW = Operation("view", "(B, T, C)", "(B, T, nh, hd)", "view")
TURN = Operation("transpose", "(B, T, nh, hd)", "(B, nh, T, hd)", "view, not contiguous")


def text(explained: Explained, **options: object) -> list[str]:
    return make.printed(trace_report(explained), soft_wrap=True, color_system=None, **options)


def test_the_usual_lines_and_the_legend_fit_into_80_columns() -> None:
    turn = Operation("transpose", "(B, nh, T, hd)", "(B, nh, hd, T)", "view, not contiguous")
    told = Explained("f(x)", "", (TraceLine(0, "134", "k.transpose(-2, -1)", (VIEW, turn)),))
    assert max(map(len, [*text(told), LEGEND])) <= 80


def of(*entries: TraceLine | Repeated, sizes: str = "", **more: Any) -> Explained:
    """A call of f."""
    return Explained("f(x)", sizes, entries, **more)


def line(code: str, *operations: Operation, depth: int = 0, number: str = "4", **more: Any) -> TraceLine:
    return TraceLine(depth, number, code, operations, **more)


FAILED = Operation("view", "(B, T, nh, hd)", "", raised=True)
CROP = torch.tensor([[0.5, float("-inf")], [1.0, -2.25]])
ODD = Operation("view", "(B, T, C)", "(B, nh, T, hd)", "view", "T is no longer T", crop=CROP, whole=(1, 2, 5, 2))
STRAYED = OriginTable(
    "head 0", (("token 0", [0, 1], [0, 1]), ("token 1", [2, -1], [100, 101])), "by its address in x", 2
)


@pytest.mark.parametrize(("told", "lines"), [
    pytest.param(
        of(line("x = x.view(B, T, n_head, -1)", VIEW, number="9"), line("return x.transpose(1, 2)", TURN, number="10"),
           sizes="B = 2, T = 5", returned="returns (B, nh, T, hd): the right numbers", right=True),
        ["  B = 2, T = 5",
         "   9  x = x.view(B, T, n_head, -1)",
         "        view          (B, T, C) → (B, T, nh, hd)          view",
         "  10  return x.transpose(1, 2)",
         "        transpose     (B, T, nh, hd) → (B, nh, T, hd)     view, not contiguous",
         "  ✓ returns (B, nh, T, hd): the right numbers"], id="a line, its operations and the verdict"),
    pytest.param(
        of(line("y = half(x)", number="9"), line("return x / 2", VIEW, depth=1), Repeated(1, "4", "4", 7, False), dropped=3),
        ["  9  y = half(x)",
         "  4    return x / 2",
         "         view          (B, T, C) → (B, T, nh, hd)          view",
         "       … 7 more like this, with other shapes (line 4)",
         "  … and 3 more operations"], id="helpers stand deeper and rounds are counted"),
    pytest.param(of(line("y.view(B, T, C)", FAILED), raised="It raised RuntimeError."),
        ["  4  y.view(B, T, C)", "       ✗ view         (B, T, nh, hd)", "  ✗ It raised RuntimeError."],
        id="an error is marked where it happened and told below"),
    pytest.param(of(line("x.view()", ODD)),
        ["  4  x.view()", "       view          (B, T, C) → (B, nh, T, hd)          view", "       ! T is no longer T",
         "         [0, 0]", "          0.50    −∞", "          1.00 -2.25", "         …"],
        id="what is odd and the numbers stand below the operation"),
    pytest.param(of(line("x.view()", proved=True)),
        ["  4  x.view()", "       ! one small change of this line makes every check pass"], id="a line that is proved to be wrong"),
    pytest.param(of(tables=(STRAYED,)),
        ["  by its address in x",
         "  head 0   yours       should be",
         "  token 0    0   1  ✓    0   1",
         "  token 1    2   ?  ✗  100 101",
         "  … and 2 more heads"], id="numbers that strayed beside those that should be there"),
    pytest.param(of(tables=(OriginTable("", (("token 0", [0, 1], [0, 1]),)),)), ["  token 0  0 1"], id="nothing strayed"),
    pytest.param(of(line("y = x[:, 0]  # [bold]not markup[/bold] [link=x]")),
        ["  4  y = x[:, 0]  # [bold]not markup[/bold] [link=x]"], id="a student's text is text"),
])  # fmt: skip
def test_a_call_is_told(told: Explained, lines: list[str]) -> None:
    assert text(told) == ["f(x)", *lines]


def test_of_a_wide_table_the_part_that_is_wrong_is_shown() -> None:
    table = OriginTable("", (("token 0", [*range(38), 5, 39], [*range(40)]),))
    *_, row = text(of(tables=(table,)))
    assert " 37  5 39  ✗ " in row


@pytest.mark.parametrize(("crop", "lines"), [
    pytest.param(torch.tensor([True, False]), ["True    ·"], id="bools"),
    pytest.param(torch.tensor([1.0, -20.0]), ["  1 -20"], id="whole numbers"),
    pytest.param(torch.tensor([0.125, float("nan")]), ["0.12  nan"], id="no number"),
    pytest.param(torch.tensor(7.0), ["7"], id="no axis"),
])  # fmt: skip
def test_numbers_are_as_short_as_they_can_be(crop: torch.Tensor, lines: list[str]) -> None:
    assert crop_lines(crop, tuple(crop.shape)) == lines
