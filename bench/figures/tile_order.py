"""The figure of tiled attention (06 of the second assignment): the tiles in their order, with the running maximum."""

from __future__ import annotations

import torch

from .drawing import Drawing, number
from .references import reference

_T, _ROWS, _KEYS = 12, 4, 3  # tokens, and a tile's queries and keys
_CELL = 15
_SHOWN = 8  # the first query of the block whose maxima are shown


def tiled_attention() -> str:
    """The tiles as they are visited, and what the last block of queries carries."""
    generator = torch.Generator().manual_seed(6)
    q, k = torch.randn(2, _T, 4, generator=generator, dtype=torch.float64) * 1.4
    steps, totals = _running(q[_SHOWN : _SHOWN + _ROWS] @ k.T / 2)
    _, lse = reference("tiled_attention", "tiled_attention")(q, k, k, _ROWS, _KEYS)
    assert torch.allclose(steps[-1] + totals.log(), lse[_SHOWN : _SHOWN + _ROWS]), "the reference carries the same"
    told = "; ".join(f"query {_SHOWN + i}: {', '.join(number(float(step[i])) for step in steps)}" for i in range(_ROWS))
    drawn = Drawing(
        "The tiles in the order they are visited, and the running maximum",
        f"{_T} queries and keys in tiles of {_ROWS} × {_KEYS}. Block by block of queries, tiles are visited from the left: 2 "
        f"for the first block, 3 for the second, 4 for the third; 3 tiles that are all future are skipped. The running maximum "
        f"after each tile of the last block: {told}. A number in a frame is a new maximum.",
    )
    drawn.text(8, 20, "Tiles in the order of the visit", "bold", "start")
    drawn.text(8, 38, "hatched: future; –: skipped", "small", "start")
    _tiles(drawn, 8, 48)
    foot = 48 + _T * _CELL + 26
    drawn.text(8, foot, f"The maximum of queries {_SHOWN} to {_T - 1}", "bold", "start")
    first = sum(_seen(top) for top in range(0, _SHOWN, _ROWS)) + 1
    for n in range(len(steps)):
        drawn.text(106 + n * 56, foot + 20, f"tile {first + n}", "small")
    for i in range(_ROWS):
        drawn.text(8, foot + 42 + i * 24, f"query {_SHOWN + i}", "small", "start")
        for n, step in enumerate(steps):
            is_new = n == 0 or bool(step[i] > steps[n - 1][i])
            drawn.cell(80 + n * 56, foot + 26 + i * 24, 52, 22, "s2" if is_new else "s4", number(float(step[i])))
            if is_new:
                drawn.frame(80 + n * 56, foot + 26 + i * 24, 52, 22)
    drawn.text(8, foot + 142, "Framed: a new maximum. All that was summed", "small", "start")
    drawn.text(8, foot + 159, "before is multiplied by exp(old − new).", "small", "start")
    return drawn.svg(foot + 170)


def _seen(top: int) -> int:
    """How many tiles a block of queries visits."""
    return -(-(top + _ROWS) // _KEYS)


def _tiles(drawn: Drawing, x: float, y: float) -> None:
    """The square, cell by cell, with a number in each tile that is visited."""
    for i in range(_T):
        for j in range(_T):
            drawn.cell(x + j * _CELL, y + i * _CELL, _CELL, _CELL, "s3" if j <= i else "hatched")
    order = 0
    for top in range(0, _T, _ROWS):
        for n, left in enumerate(range(0, _T, _KEYS)):
            order += n < _seen(top)
            drawn.frame(x + left * _CELL, y + top * _CELL, _KEYS * _CELL, _ROWS * _CELL)
            middle = (x + (left + _KEYS / 2) * _CELL, y + (top + _ROWS / 2) * _CELL)
            drawn.cell(middle[0] - 10, middle[1] - 10, 20, 20, "paper", str(order) if n < _seen(top) else "–")


def _running(scores: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The maximum of each query so far, after each tile; and the sum at the end."""
    late = torch.arange(_T) > torch.arange(_SHOWN, _SHOWN + _ROWS)[:, None]
    hidden = scores.masked_fill(late, -torch.inf)
    maxima = [hidden[:, : left + _KEYS].amax(-1) for left in range(0, _seen(_SHOWN) * _KEYS, _KEYS)]
    return maxima, (hidden - maxima[-1][:, None]).exp().sum(-1)
