"""Figures of cross-attention behind a padding mask, and of query heads that share keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from .drawing import Drawing, number, share
from .references import reference

ASKS = [[1.0, 0.0], [0.0, 1.0]]
CONTEXT = [[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]]
KEEP = [True, True, False]
_LEFT, _WIDE, _HIGH = 62, 78, 30


def cross_attention() -> str:
    """The same two queries over three context tokens, without keep and with it."""
    everyone, kept = _crossed(None), _crossed(torch.tensor([KEEP]))
    drawn = Drawing(
        "Padding takes the attention that real tokens should share",
        f"Two tables of 2 × 3 weights; the third context token is padding. Without keep x0 gives {_list(everyone[0])}, x1 "
        f"{_list(everyone[1])}. With keep the column of the padding is hidden: x0 gives {_list(kept[0])}, x1 "
        f"{_list(kept[1])}.",
    )
    _weights(drawn, 20, "Without keep: the padding is heard", everyone, [True] * 3)
    _weights(drawn, 152, "With keep: its column is hidden", kept, KEEP)
    drawn.text(8, 286, "A row is a token of x: it spends 1. A column is", "small", "start")
    drawn.text(8, 303, "a context token, and keep hides whole columns.", "small", "start")
    return drawn.svg(314)


def _crossed(keep: Tensor | None) -> Tensor:
    """The weights (T_q, T_k): what the reference answers when the values are the unit vectors of the context's tokens."""
    module = reference("cross_attention", "CrossAttention")(2, 5, 6, 1).double()
    asks, asked = (torch.tensor(rows, dtype=torch.float64) for rows in (ASKS, CONTEXT))
    wide = 3**0.5  # one head of 6 channels in place of 2: the scores are divided by √6, not by √2
    state = {name: torch.zeros_like(each) for name, each in module.state_dict().items()}
    state["W_query.weight"][:2] = wide * torch.eye(2)
    state["W_key.weight"][:2, :2] = torch.eye(2)
    state["W_value.weight"][:3, 2:] = torch.eye(3)
    state["out_proj.weight"] = torch.eye(6)
    module.load_state_dict(state)
    context = torch.cat([asked, torch.eye(3, dtype=torch.float64)], dim=1)
    with torch.no_grad():
        answer: Tensor = module(asks[None], context[None], keep)[0, :, :3]
    return answer


def _weights(drawn: Drawing, y: float, title: str, weights: Tensor, keep: list[bool]) -> None:
    drawn.text(8, y, title, "bold", "start")
    for j, word in enumerate(("c0 real", "c1 real", "c2 padding")):
        drawn.text(_LEFT + (j + 0.5) * _WIDE, y + 22, word, "small")
    for i, row in enumerate(weights.tolist()):
        drawn.text(_LEFT - 6, y + 50 + i * _HIGH, f"x{i}", "small", "end")
        for j, value in enumerate(row):
            place = (_LEFT + j * _WIDE, y + 30 + i * _HIGH, _WIDE, _HIGH)
            if keep[j]:
                drawn.cell(*place, share(value), number(value))
            else:
                drawn.cell(*place, "hatched")


_HEADS, _SETS = 4, 2
TOKEN = [1.0, 2.0, 3.0, 4.0]
VALUES = [[10.0, 0.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0]]  # rows 2 and 3 of kv.weight: sets 0 and 1 say 10 and 20


def grouped_query_attention() -> str:
    """Which set of keys and values each query head reads, and what a token alone then carries."""
    told = _grouped()
    tiled = [told[h % _SETS * (_HEADS // _SETS)] for h in range(_HEADS)]
    drawn = Drawing(
        "Neighbouring query heads share one set",
        "Four query heads over two sets of keys and values. Right: heads 0 and 1 read set 0, heads 2 and 3 read set 1, and a "
        f"token alone carries {_list(told)}. Wrong, with the row repeated: heads 0 and 2 read set 0, heads 1 and 3 read "
        f"set 1, and it would carry {_list(tiled)}.",
    )
    group = _HEADS // _SETS
    _reading(drawn, 20, "Each set for a group: 0, 0, 1, 1", [h // group for h in range(_HEADS)], told, "line")
    _reading(drawn, 212, "Not the row twice: 0, 1, 0, 1", [h % _SETS for h in range(_HEADS)], tiled, "dashed")
    return drawn.svg(392)


def _grouped() -> list[float]:
    """What a token alone carries: proj passes everything on."""
    module = reference("grouped_query_attention", "GroupedQueryAttention")(_HEADS, _HEADS, _SETS, 4).double()
    state = {"kv.weight": torch.tensor([[0.0] * 4] * _SETS + VALUES), "proj.weight": torch.eye(_HEADS)}
    module.load_state_dict(state, strict=False)
    with torch.no_grad():
        answer: Tensor = module(torch.tensor([[TOKEN]], dtype=torch.float64))[0, 0]
    return answer.tolist()


def _reading(drawn: Drawing, y: float, title: str, reads: list[int], told: list[float], kind: str) -> None:
    wide = 68
    drawn.text(8, y, title, "bold", "start")
    for s in range(_SETS):
        drawn.cell(60 + s * 136, y + 84, wide, 28, "ab"[s])
        drawn.text(94 + s * 136, y + 103, f"set {s}", "small")
    for h, s in enumerate(reads):
        left = 24 + h * 72
        drawn.cell(left, y + 12, 62, 28, "ab"[s])
        drawn.text(left + 31, y + 31, f"head {h}", "small")
        drawn.line((left + 31, y + 40), (94 + s * 136 + (h - 1.5) * 8, y + 84), kind=kind)
        drawn.cell(left, y + 138, 62, 28, "ab"[s], number(told[h]))
    drawn.text(24, y + 132, "A token alone carries:", "small", "start")


def _list(row: Tensor | list[float]) -> str:
    return ", ".join(number(float(value)) for value in row)
