"""The figure of the sliding window: the band on the grid, and where it ends when fewer queries than keys come."""

from __future__ import annotations

from .drawing import Drawing
from .references import reference

_T, _LATE, _WINDOW, _ASKED = 8, 3, 3, 5
_CELL, _LEFT = 22, 34


def sliding_window() -> str:
    """The whole band; below, the last queries where they stand, and where they do not."""
    mask = reference("sliding_window", "window_mask")
    whole, late = mask(_T, _T, _WINDOW).tolist(), mask(_LATE, _T, _WINDOW).tolist()
    wrong = mask(_LATE, _LATE, _WINDOW).tolist()
    assert late == whole[-_LATE:], "the last queries have the last rows"
    seen = [j for j in range(_T) if whole[_ASKED][j]]
    newest = [j for j in range(_T) if late[-1][j]]
    astray = [j for j in range(_LATE) if wrong[-1][j]]
    drawn = Drawing(
        f"A window of {_WINDOW} is a band that ends in the lower right corner",
        f"A table of {_T} queries and {_T} keys. Each query sees itself and the {_WINDOW - 1} keys before it: query {_ASKED} "
        f"sees {_told(seen)}. Below, {_LATE} queries with {_T} keys: they are the last rows of the same table, and the newest sees "
        f"{_told(newest)}. Counted from 0, in the upper left corner, it would see {_told(astray)}, which is wrong.",
    )
    drawn.text(8, 20, f"A window of {_WINDOW}: rows ask, columns answer", "bold", "start")
    _grid(drawn, 30, whole, range(_T))
    drawn.frame(_LEFT, 44 + _ASKED * _CELL, _T * _CELL, _CELL)
    x = _LEFT + _T * _CELL + 10
    _legend(drawn, x, len(seen))
    foot = 44 + _T * _CELL
    drawn.text(8, foot + 28, f"{_LATE} queries while decoding: the last rows", "bold", "start")
    _grid(drawn, foot + 36, late, range(_T - _LATE, _T))
    drawn.text(x, foot + 50 + 1.5 * _CELL + 4, "right: the last", "small", "start")
    drawn.text(x, foot + 50 + 2.5 * _CELL + 4, "at the last key", "small", "start")
    low = foot + 50 + _LATE * _CELL
    drawn.text(8, low + 28, "Counted from 0: the oldest keys", "bold", "start")
    _grid(drawn, low + 36, [row + [False] * (_T - _LATE) for row in wrong], range(_LATE), "b")
    drawn.text(x, low + 50 + 1.5 * _CELL + 4, "wrong: babble,", "small", "start")
    drawn.text(x, low + 50 + 2.5 * _CELL + 4, "and no error", "small", "start")
    return drawn.svg(low + 50 + _LATE * _CELL + 12)


def _grid(drawn: Drawing, top: float, mask: list[list[bool]], rows: range, colour: str = "s1") -> None:
    """A table below its column numbers. Where a query may look stands a dot."""
    for j in range(_T):
        drawn.text(_LEFT + (j + 0.5) * _CELL, top + 11, str(j), "small")
    for i, (name, row) in enumerate(zip(rows, mask, strict=True)):
        drawn.text(_LEFT - 8, top + 14 + (i + 0.5) * _CELL + 4, str(name), "small", "end")
        for j, seen in enumerate(row):
            place = (_LEFT + j * _CELL, top + 14 + i * _CELL, _CELL, _CELL)
            hidden = "hatched" if j > name else "none"
            drawn.cell(*place, colour if seen else hidden, "●" if seen else "")


def _legend(drawn: Drawing, x: float, seen: int) -> None:
    for i, (colour, words) in enumerate((("s1", "may look"), ("hatched", "the future"), ("none", "far past"))):
        drawn.cell(x, 50 + i * 28, 20, 20, colour, "●" if colour == "s1" else "")
        drawn.text(x + 26, 65 + i * 28, words, "small", "start")
    drawn.text(x, 44 + (_ASKED + 0.5) * _CELL + 4, f"query {_ASKED} shares", "small", "start")
    drawn.text(x, 44 + (_ASKED + 1.5) * _CELL + 2, f"1 out over {seen}", "small", "start")


def _told(keys: list[int]) -> str:
    return "keys " + ", ".join(map(str, keys[:-1])) + f" and {keys[-1]}"
