"""The figure of rotary positions: hands that turn at two speeds, and the angle between a query and a key."""

from __future__ import annotations

import math

import torch

from .drawing import Drawing, number
from .references import reference

_POSITIONS, _HD = (0, 1, 2, 3), 4
_RADIUS = 27
_PLACES = ((2, 0), (5, 3))  # of a query and a key, two apart


def rotary() -> str:
    """Two rows of clocks, and two pairs of hands that stand two steps apart."""
    rotate = reference("rotary", "rotate")
    rest = torch.tensor([[1.0, 0.0, 1.0, 0.0]], dtype=torch.float64).repeat(len(_POSITIONS), 1)
    turned = rotate(rest, torch.tensor(_POSITIONS))
    angles = [[math.atan2(row[2 * i + 1], row[2 * i]) for row in turned.tolist()] for i in (0, 1)]
    steps = [math.degrees(each[1] - each[0]) for each in angles]
    scores = [_score(m, n) for m, n in _PLACES]
    assert abs(scores[0] - scores[1]) < 1e-9, "a score knows the difference alone"
    drawn = Drawing(
        "Rotary positions turn each pair of channels, each at its own speed",
        f"Clocks with one hand each, at positions {', '.join(map(str, _POSITIONS))}. Pair 0 turns by {steps[0]:.0f} degrees a step, "
        f"pair 1 by {number(steps[1])}. Below, a query and a key that point the same way at position 0: the query at position "
        f"{_PLACES[0][0]} with the key at {_PLACES[0][1]}, and the query at {_PLACES[1][0]} with the key at {_PLACES[1][1]}. "
        f"Both times the angle between them is 2 rad, and the score {number(scores[0])}.",
    )
    drawn.text(8, 20, "A pair of channels is a clock’s hand", "bold", "start")
    for i, each in enumerate(angles):
        top = 44 + i * 108
        drawn.text(8, top - 4, f"pair {i}: {_degrees(steps[i])} a step", "small", "start")
        for j, angle in enumerate(each):
            x, y = 42 + j * 78, top + 36
            _clock(drawn, x, y, "s3")
            _hand(drawn, x, y, angle)
            drawn.text(x, top + 82, f"at {_POSITIONS[j]}: {_degrees(steps[i] * _POSITIONS[j])}", "small")
    foot = 44 + 108 + 82
    drawn.text(8, foot + 26, "Two steps apart: the same score", "bold", "start")
    for j, ((m, n), score) in enumerate(zip(_PLACES, scores, strict=True)):
        x, y = 84 + j * 152, foot + 88
        _clock(drawn, x, y, "a", 36)
        _hand(drawn, x, y, m, 36, "q")
        _hand(drawn, x, y, n, 36, "k")
        drawn.text(x, y + 70, f"q at {m}, k at {n}", "small")
        drawn.text(x, y + 88, f"cos({m} − {n}) = {number(score)}", "code")
    return drawn.svg(foot + 190)


def _degrees(angle: float) -> str:
    return f"{angle:.0f}°" if angle == 0 or abs(angle) >= 10 else f"{number(angle)}°"


def _score(m: int, n: int) -> float:
    """The dot product of a hand at rest, turned by m as a query and by n as a key."""
    hand = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    scores = reference("rotary", "rotary_scores")(hand, hand, torch.tensor([m]), torch.tensor([n]))
    return float(scores) * math.sqrt(2)


def _clock(drawn: Drawing, x: float, y: float, colour: str, radius: float = _RADIUS) -> None:
    """A dial: four quarters, between them the two axes of a pair of channels."""
    for left in (x - radius, x):
        for top in (y - radius, y):
            drawn.cell(left, top, radius, radius, colour)


def _hand(drawn: Drawing, x: float, y: float, angle: float, radius: float = _RADIUS, name: str = "") -> None:
    """An arrow that points from the middle; angles grow against the clock, as in mathematics."""
    cos, sin = math.cos(angle), math.sin(angle)
    end = (round(x + radius * 0.92 * cos, 1), round(y - radius * 0.92 * sin, 1))
    drawn.line((x, y), end, kind="arrow")
    if name:
        drawn.text(round(x + (radius + 12) * cos, 1), round(y - (radius + 12) * sin + 4, 1), name, "bold")
