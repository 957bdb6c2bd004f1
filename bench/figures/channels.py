"""Figures of channels that are dealt out to heads: on the tape of the memory (04), and in a weight that is cut (05)."""

from __future__ import annotations

import torch
from torch import Tensor

from .drawing import Drawing, number, share, size
from .references import reference

_T, _HEADS, _HEAD_DIM = 4, 2, 2
_POSITIONS = "abcd"


def reshape_dance() -> str:
    """The tape, what the dance gives each head, and what the shortcut gives it."""
    channels = _HEADS * _HEAD_DIM
    x = torch.arange(_T * channels).view(1, _T, channels)
    right = reference("reshape_dance", "split_heads")(x, _HEADS)[0].tolist()
    wrong = x.view(_HEADS, _T, _HEAD_DIM).tolist()
    drawn = Drawing(
        "The tape, the dance and the shortcut",
        "A tape of 16 numbers: positions a to d, channels 0 to 3 of each. The dance gives head 0 the channels "
        f"{_read(right[0])}, two of every position. The shortcut gives it {_read(wrong[0])}: all of positions a and b, "
        "and nothing else.",
    )
    drawn.text(8, 20, "The tape: 4 positions of 4 channels", "bold", "start")
    for at in range(_T * channels):
        drawn.cell(8 + at * 19, 30, 19, 24, "ab"[at % channels // _HEAD_DIM], _name(at))
    for t in range(_T):
        drawn.line((10 + t * 76, 60), (82 + t * 76, 60))
        drawn.text(46 + t * 76, 76, f"position {_POSITIONS[t]}", "small")
    drawn.text(8, 96, "Channels 0 and 1 are head 0’s, 2 and 3 head 1’s.", "small", "start")
    _dealt(drawn, 128, "The dance: cut, then swap", right, right)
    _dealt(drawn, 252, "The shortcut: view to (nh, T, hd)", wrong, right)
    drawn.text(8, 368, "✗ is not what this head should hold there:", "small", "start")
    drawn.text(8, 385, "head 0 has lost positions c and d for good.", "small", "start")
    return drawn.svg(396)


def _dealt(drawn: Drawing, y: float, name: str, heads: list[list[list[int]]], right: list[list[list[int]]]) -> None:
    drawn.text(8, y, name, "bold", "start")
    for h, head in enumerate(heads):
        drawn.text(8, y + 27 + h * 34, f"head {h}", "small", "start")
        for t, numbers in enumerate(head):
            for d, at in enumerate(numbers):
                is_right = right[h][t][d] == at
                place = (56 + t * 66 + d * 31, y + 10 + h * 34, 31, 26)
                drawn.cell(*place, "ab"[at % (_HEADS * _HEAD_DIM) // _HEAD_DIM], _name(at) + ("" if is_right else "✗"))
    for t in range(_T):
        drawn.text(87 + t * 66, y + 92, f"position {t}" if t == 0 else str(t), "small")


def _name(at: int) -> str:
    """A number of the tape by where it came from: c1 is channel 1 of position c."""
    return f"{_POSITIONS[at // (_HEADS * _HEAD_DIM)]}{at % (_HEADS * _HEAD_DIM)}"


def _read(head: list[list[int]]) -> str:
    return ", ".join(_name(at) for numbers in head for at in numbers)


# The walk through of lesson 5: two tokens, and the weights of queries and keys.
TOKENS = [[-1.4208, 0.5254, 0.0145, -1.0520], [-1.3243, -0.2664, 2.0347, -0.2241]]
W_QUERY = [
    [0.1118, -0.4581, -0.2810, -0.0504],
    [0.4673, 0.0952, -0.1767, 0.3812],
    [-0.1484, -0.0739, 0.4602, 0.3879],
    [0.2999, 0.3496, -0.2486, -0.0946],
]
W_KEY = [
    [-0.3001, -0.4434, -0.0820, -0.1382],
    [0.4897, -0.3804, 0.1761, 0.3176],
    [0.4293, -0.1651, -0.0434, 0.4178],
    [0.2808, 0.0722, 0.2693, 0.4605],
]


def weight_split() -> str:
    """One product of full width, cut into two heads, each of which then shares out for itself."""
    x, w_query, w_key = (torch.tensor(each, dtype=torch.float64) for each in (TOKENS, W_QUERY, W_KEY))
    split = reference("reshape_dance", "split_heads")
    q, k = (split((x @ w.T)[None], _HEADS)[0] for w in (w_query, w_key))  # (nh, T, hd) each
    weights = reference("attention_scores", "attention_weights")(
        reference("attention_scores", "attention_scores")(q, k)
    )
    asked = weights[:, 1]  # of token 1, by head
    drawn = Drawing(
        "One weight, cut into two heads",
        f"W_query of 4 × 4 numbers times token 1 gives q of 4 numbers. The cut is between the second and the third row: "
        f"{_list(q[0, 1])} is head 0's query, {_list(q[1, 1])} head 1's. Then each head shares out by itself: head 0 gives "
        f"token 0 and token 1 {_list(asked[0])}, head 1 gives {_list(asked[1])}.",
    )
    high, left = 26, 46
    drawn.text(left + 82, 20, "W_query", "bold")
    drawn.text(239, 20, "token 1", "bold")
    drawn.text(292, 20, "q", "bold")
    for h in range(_HEADS):
        drawn.text(1, 28 + h * 2 * high + high + 4, f"head {h}", "small", "start")
    for i, row in enumerate(W_QUERY):
        for j, value in enumerate(row):
            drawn.cell(left + j * 41, 28 + i * high, 41, high, "ab"[i // 2], number(value))
        drawn.cell(219, 28 + i * high, 42, high, size(TOKENS[1][i]), number(TOKENS[1][i]))
        drawn.cell(270, 28 + i * high, 44, high, "ab"[i // 2], number(float(q[i // 2, 1, i % 2])))
    drawn.text(214.5, 28 + high + 4, "×", "bold")
    drawn.text(265.5, 28 + high + 4, "=", "bold")
    drawn.line((2, 28 + 2 * high), (216, 28 + 2 * high), kind="dashed")
    drawn.line((264, 28 + 2 * high), (318, 28 + 2 * high), kind="dashed")
    drawn.text(6, 154, "Cut along the dashed line: rows do not know of", "small", "start")
    drawn.text(6, 171, "each other. Then each head shares out for itself:", "small", "start")
    for h in range(_HEADS):
        _bar(drawn, 186 + h * 52, h, asked[h])
    return drawn.svg(288)


def _bar(drawn: Drawing, y: float, head: int, weights: Tensor) -> None:
    """What token 1 gives to tokens 0 and 1: a bar of one unit."""
    drawn.text(6, y + 22, f"head {head}", "small", "start")
    x = 56.0
    for token, weight in enumerate(weights.tolist()):
        wide = round(258 * weight, 1)
        drawn.cell(x, y, wide, 34, share(weight))
        drawn.text(x + wide / 2, y + 15, f"token {token}", "small")
        drawn.text(x + wide / 2, y + 30, number(weight), "code")
        x += wide


def _list(row: Tensor) -> str:
    return " and ".join(number(value) for value in row.tolist())
