"""A rotation is drawn as angles, pair by pair; what is no rotation is called so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call, TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.course import CourseError, load_course
from manyheads.course.shapes import parse_signature
from manyheads.student.axes import Axes
from manyheads.student.bands import Band, summary
from manyheads.student.example import Example
from manyheads.student.plot_content import bands, resized, turns, wrapped

TURN = parse_signature("(x: (B, T, hd), positions: (T,)) -> (B, T, hd)")
X = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(4))
POSITIONS = torch.tensor([0, 7, 3, 1, 20])
SPEEDS = torch.tensor([1.0, 0.3, 0.02])
RIGHT = """
import torch
def turn(x, positions):
    angle = positions[:, None] * torch.tensor([1.0, 0.3, 0.02])
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2)
"""
TITLE = "by how much turn(x, positions) turns each pair, in radians"


def drawn(source: str) -> list[Band]:
    namespace: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), namespace)
    angle = POSITIONS[:, None] * SPEEDS
    a, b = X[..., 0::2], X[..., 1::2]
    expected = torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), dim=-1).flatten(-2)
    call = Call("turn", (X, POSITIONS))
    example = Example(call, expected, True, TURN, Axes({"B": 2, "T": 5, "hd": 6}), turned="x")
    return bands(example, trace(namespace, TraceCall(call), "a.py"))


def tables(band: Band) -> list[Tensor]:
    return [panel.values for panel in band.panels if panel.values is not None]


def test_the_angles_of_a_right_attempt_are_those_that_are_expected() -> None:
    _, band = drawn(RIGHT)
    assert (band.title, band.rows, band.columns) == (TITLE, "token", "pair of neighbouring channels")
    expected, yours, _ = tables(band)
    torch.testing.assert_close(expected, wrapped(POSITIONS[:, None] * SPEEDS.double()), atol=1e-5, rtol=0)
    torch.testing.assert_close(yours, expected, atol=1e-5, rtol=0)
    assert summary([band]) == [f"{TITLE}: as expected"]


def test_a_turn_the_other_way_shows_by_how_much() -> None:
    _, band = drawn(RIGHT.replace("angle = ", "angle = -"))
    _, yours, apart = tables(band)
    assert yours[3].tolist() == pytest.approx([-1.0, -0.3, -0.02], abs=1e-5)
    assert apart[3].tolist() == pytest.approx([-2.0, -0.6, -0.04], abs=1e-5)
    assert band.differs


def test_what_changes_a_length_is_called_no_rotation() -> None:
    _, band = drawn(RIGHT.replace("return torch", "return 2 * torch"))
    assert [panel.values is None for panel in band.panels] == [False, True, True]
    assert summary([band]) == [f"{TITLE}: yours is no rotation: 15 of 15 pairs change their length"]


@pytest.mark.parametrize("body", ["return None", "raise NotImplementedError", "return x[..., :4]"])
def test_where_there_is_nothing_to_measure_no_angle_is_drawn(body: str) -> None:
    assert [band.title for band in drawn(f"def turn(x, positions): {body}")] == ["turn(x, positions)"]


def test_half_a_turn_is_half_a_turn_from_either_side() -> None:
    angles = wrapped(torch.tensor([math.pi, -math.pi, 2 * math.pi, 0.5 - 2 * math.pi], dtype=torch.float64))
    assert angles.tolist() == pytest.approx([math.pi, math.pi, 0.0, 0.5], abs=1e-6)


def test_a_pair_without_length_has_no_angle_and_nan_no_length() -> None:
    given, found = torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.tensor([[1e-9, -1e-9, math.nan, 0.0]])
    assert turns(found, given)[0, 0] == 0
    assert resized(found, given).tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        ("{other: {turned: x}}", "plot: other has no shapes"),
        ("{turn: {turned: y}}", "plot: turn should return one tensor of the shape of y"),
        ("{turn: {turned: positions}}", "plot: turn should return one tensor of the shape of positions"),
        ("{turn: {}}", "plot: say what is drawn, turned or tiles"),
        (
            "{turn: {tiles: {queries: x, keys: k, rows: n, columns: n}}}",
            r"plot: turn should take x and k, \(…, T, width\)",
        ),
        (
            "{turn: {tiles: {queries: x, keys: positions, rows: n, columns: n}}}",
            "plot: turn should take x and positions, ",
        ),
        ("{turn: {tiles: {queries: x, keys: x, rows: n, columns: m}}}", "plot: turn should take m, a number"),
        (
            "{turn: {tiles: {queries: x, keys: x, rows: positions, columns: n}}}",
            "plot: turn should take positions, a nu",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told_when_the_course_is_read(tmp_path: Path, plot: str, message: str) -> None:
    row = (
        "{id: a, title: A, points: 1, hint: Think., shapes: {turn: '(x: (B, T), positions: (T,), n) -> (B, T)'}, plot: "
    )
    course = f"title: T\nassignments:\n  - {{id: x, title: X, exercises: [{row}{plot}}}]}}\n"
    (tmp_path / "course.yaml").write_text(course, encoding="utf-8")
    with pytest.raises(CourseError, match=message):
        load_course(tmp_path)
