"""The figure of the fast path (08): the whole square by hand, one tile at a time where it is fused."""

from __future__ import annotations

import torch

from .drawing import Drawing, number
from .references import reference

_T, _BLOCK, _QUERY = 12, 4, 9
SCORES = [0.3, 1.2, -0.5, 0.8, 2.1, 0.1, -1.0, 0.4, 1.5, -0.2]  # of the query _QUERY, for itself and its past
_CELL = 12


def sdpa_equivalence() -> str:
    """Both squares, and what is carried from tile to tile for one query."""
    steps = _running(SCORES)
    shares = reference("attention_scores", "attention_weights")(torch.tensor(SCORES, dtype=torch.float64))
    highest, total = steps[-1]
    at_once = torch.tensor([score - highest for score in SCORES], dtype=torch.float64).exp() / total
    assert torch.allclose(at_once, shares), "the running sum is the softmax's"
    told = "; ".join(f"after tile {i}: {number(m)} and {number(s)}" for i, (m, s) in enumerate(steps, 1))
    drawn = Drawing(
        "By hand the whole square, fused one tile at a time",
        f"By hand {_T} × {_T} = {_T * _T} scores are in memory at once. Fused, a tile of {_BLOCK} × {_BLOCK} = "
        f"{_BLOCK * _BLOCK} is, one after the other; tiles of the future are skipped. For query {_QUERY} a running maximum "
        f"and a running sum are carried along, {told}, and the weights come out the same.",
    )
    side = _T * _CELL
    drawn.text(8, 20, "By hand", "bold", "start")
    drawn.text(8, 37, f"{_T * _T} scores in memory", "small", "start")
    drawn.text(168, 20, "Fused, in tiles", "bold", "start")
    drawn.text(168, 37, f"{_BLOCK * _BLOCK} scores at a time", "small", "start")
    for i in range(_T):
        for j in range(_T):
            drawn.cell(8 + j * _CELL, 46 + i * _CELL, _CELL, _CELL, "s1" if j <= i else "hatched")
    _tiles(drawn, 168, 46)
    drawn.frame(8, 46 + _QUERY * _CELL, side, _CELL)
    drawn.frame(168, 46 + _QUERY * _CELL, side, _CELL)
    y = 46 + side + 24
    drawn.text(8, y, f"What query {_QUERY} carries from tile to tile", "bold", "start")
    for x, name in ((8, "its scores in the tile"), (202, "maximum"), (272, "sum")):
        drawn.text(x, y + 19, name, "small", "start")
    for i, (m, s) in enumerate(steps):
        top = y + 26 + i * 26
        for j, score in enumerate(SCORES[i * _BLOCK : (i + 1) * _BLOCK]):
            drawn.cell(8 + j * 44, top, 44, 22, "s3", number(score))
        drawn.line((188, top + 11), (200, top + 11), kind="arrow")
        drawn.cell(204, top, 50, 22, "s2", number(m))
        drawn.cell(264, top, 50, 22, "s2", number(s))
    foot = y + 26 + 3 * 26
    drawn.text(8, foot + 14, "The last sum is the softmax’s own: the same", "small", "start")
    drawn.text(8, foot + 31, "weights, and no square was ever made.", "small", "start")
    return drawn.svg(foot + 42)


def _tiles(drawn: Drawing, x: float, y: float) -> None:
    """The square in tiles: done, at work, and skipped."""
    side = _BLOCK * _CELL
    for i in range(_T // _BLOCK):
        for j in range(_T // _BLOCK):
            at, now = (i, j), (_QUERY // _BLOCK, 1)
            words = "skip" if j > i else "now" if at == now else "done" if at < now else "next"
            colour = {"skip": "paper", "now": "s0"}.get(words, "none")
            drawn.cell(x + j * side, y + i * side, side, side, colour)
            drawn.text(x + (j + 0.5) * side, y + i * side + (44 if i == now[0] else 29), words, "small")


def _running(scores: list[float]) -> list[tuple[float, float]]:
    """The maximum and the sum of exponentials so far, after each tile."""
    found, highest, total = [], float("-inf"), 0.0
    values = torch.tensor(scores, dtype=torch.float64)
    for tile in values.split(_BLOCK):
        higher = max(highest, float(tile.max()))
        total = total * float(torch.tensor(highest - higher).double().exp()) + float((tile - higher).exp().sum())
        highest = higher
        found.append((highest, total))
    return found
