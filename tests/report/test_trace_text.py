"""A followed call as a person reads it."""

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


def test_a_line_its_operations_and_the_verdict() -> None:
    entries = (
        TraceLine(0, "9", "x = x.view(B, T, n_head, -1)", (VIEW,)),
        TraceLine(0, "10", "return x.transpose(1, 2)", (TURN,)),
    )
    told = Explained("split(x)", "B = 2, T = 5", entries, "returns (B, nh, T, hd): the right numbers", right=True)
    assert text(told) == [
        "split(x)",
        "  B = 2, T = 5",
        "   9  x = x.view(B, T, n_head, -1)",
        "        view          (B, T, C) → (B, T, nh, hd)          view",
        "  10  return x.transpose(1, 2)",
        "        transpose     (B, T, nh, hd) → (B, nh, T, hd)     view, not contiguous",
        "  ✓ returns (B, nh, T, hd): the right numbers",
    ]


def test_the_usual_lines_and_the_legend_fit_into_80_columns() -> None:
    turn = Operation("transpose", "(B, nh, T, hd)", "(B, nh, hd, T)", "view, not contiguous")
    told = Explained("f(x)", "", (TraceLine(0, "134", "k.transpose(-2, -1)", (VIEW, turn)),))
    assert max(map(len, [*text(told), LEGEND])) <= 80


def test_helpers_stand_deeper_and_rounds_are_counted() -> None:
    entries = (
        TraceLine(0, "9", "y = half(x)"),
        TraceLine(1, "4", "return x / 2", (VIEW,)),
        Repeated(1, "4", "4", 7, False),
    )
    assert text(Explained("f(x)", "", entries, dropped=3)) == [
        "f(x)",
        "  9  y = half(x)",
        "  4    return x / 2",
        "         view          (B, T, C) → (B, T, nh, hd)          view",
        "       … 7 more like this, with other shapes (line 4)",
        "  … and 3 more operations",
    ]


def test_an_error_is_marked_where_it_happened_and_told_below() -> None:
    failed = Operation("view", "(B, T, nh, hd)", "", raised=True)
    told = text(
        Explained("f(x)", "", (TraceLine(0, "4", "y.view(B, T, C)", (failed,)),), raised="It raised RuntimeError.")
    )
    assert told[2:] == ["       ✗ view         (B, T, nh, hd)", "  ✗ It raised RuntimeError."]


def test_what_is_odd_and_the_numbers_stand_below_the_operation() -> None:
    crop = torch.tensor([[0.5, float("-inf")], [1.0, -2.25]])
    odd = Operation("view", "(B, T, C)", "(B, nh, T, hd)", "view", "T is no longer T", crop=crop, whole=(1, 2, 5, 2))
    assert text(Explained("f(x)", "", (TraceLine(0, "4", "x.view()", (odd,)),)))[3:] == [
        "       ! T is no longer T", "         [0, 0]", "          0.50    −∞", "          1.00 -2.25", "         …",
    ]  # fmt: skip


def test_a_line_that_is_proved_to_be_wrong_says_so() -> None:
    told = text(Explained("f(x)", "", (TraceLine(0, "4", "x.view()", (VIEW,), proved=True),)))
    assert told[1:3] == ["  4  x.view()", "       ! one small change of this line makes every check pass"]


def test_numbers_that_strayed_stand_beside_those_that_should_be_there() -> None:
    rows = ("token 0", [0, 1], [0, 1]), ("token 1", [2, -1], [100, 101])
    told = text(Explained("f(x)", "", (), tables=(OriginTable("head 0", rows, "by its address in x", 2),)))
    assert told[1:] == [
        "  by its address in x",
        "  head 0   yours       should be",
        "  token 0    0   1  ✓    0   1",
        "  token 1    2   ?  ✗  100 101",
        "  … and 2 more heads",
    ]


def test_of_a_wide_table_the_part_that_is_wrong_is_shown() -> None:
    table = OriginTable("", (("token 0", [*range(38), 5, 39], [*range(40)]),))
    *_, row = text(Explained("f(x)", "", (), tables=(table,)))
    assert " 37  5 39  ✗ " in row


def test_where_nothing_strayed_there_is_one_table() -> None:
    table = OriginTable("", (("token 0", [0, 1], [0, 1]),))
    assert text(Explained("f(x)", "", (), tables=(table,)))[1:] == ["  token 0  0 1"]


def test_a_students_text_is_text() -> None:
    line = TraceLine(0, "4", "y = x[:, 0]  # [bold]not markup[/bold] [link=x]", ())
    assert text(Explained("f(x)", "", (line,)))[1] == "  4  y = x[:, 0]  # [bold]not markup[/bold] [link=x]"


@pytest.mark.parametrize(("crop", "lines"), [
    pytest.param(torch.tensor([True, False]), ["True    ·"], id="bools"),
    pytest.param(torch.tensor([1.0, -20.0]), ["  1 -20"], id="whole numbers"),
    pytest.param(torch.tensor([0.125, float("nan")]), ["0.12  nan"], id="no number"),
    pytest.param(torch.tensor(7.0), ["7"], id="no axis"),
])  # fmt: skip
def test_numbers_are_as_short_as_they_can_be(crop: torch.Tensor, lines: list[str]) -> None:
    assert crop_lines(crop, tuple(crop.shape)) == lines
