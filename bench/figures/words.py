"""Figures of the six words: the table of weights (01), and what the causal mask leaves of it (02)."""

from __future__ import annotations

import torch
from torch import Tensor

from .drawing import Drawing, number, share
from .references import reference

WORDS = ("Your", "journey", "starts", "with", "one", "step")
SENTENCE = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ],
    dtype=torch.float64,
)
ASKED = WORDS.index("journey")
_LEFT, _TOP, _WIDE, _HIGH = 74, 86, 34, 26


def attention_scores() -> str:
    """The weights of the bare idea: each row is one unit, shared out."""
    weights = reference("attention_scores", "attention_weights")(SENTENCE @ SENTENCE.T)
    popular = number(float(weights[:, ASKED].sum()))
    drawn = Drawing(
        "Six words share out their attention",
        f"A table of 6 × 6 weights. Each row sums to 1: journey gives {_told(weights[ASKED])}. "
        f"The columns need not: the column of journey sums to {popular}.",
    )
    _grid(drawn, weights, torch.ones_like(weights, dtype=torch.bool))
    foot = _TOP + 6 * _HIGH
    drawn.text(_LEFT - 6, foot + 20, "sum", "small", "end")
    for j, total in enumerate(weights.sum(0).tolist()):
        drawn.text(_LEFT + (j + 0.5) * _WIDE, foot + 20, number(total), "code")
    drawn.text(8, foot + 48, "A row is one word that asks: it spends 1.", "small", "start")
    drawn.text(8, foot + 66, f"A column answers: {popular} is a popular word.", "small", "start")
    return drawn.svg(foot + 78)


def causal_mask() -> str:
    """The same table behind the mask: nothing of the future, and each row is one unit again."""
    weights = reference("causal_mask", "causal_weights")(SENTENCE @ SENTENCE.T)
    drawn = Drawing(
        "The same table behind the causal mask",
        "A table of 6 × 6 weights. What lies above the diagonal is hidden and gets 0; each row sums to 1 over what is "
        f"left: Your gives 1 to itself, journey gives {_told(weights[ASKED])}.",
    )
    _grid(drawn, weights, reference("causal_mask", "causal_mask")(6))
    foot = _TOP + 6 * _HIGH
    drawn.cell(8, foot + 14, _WIDE, 20, "hatched")
    drawn.text(50, foot + 29, "the future: −∞ before the softmax,", "small", "start")
    drawn.text(50, foot + 46, "0 after it; what is left shares 1", "small", "start")
    return drawn.svg(foot + 58)


def _grid(drawn: Drawing, weights: Tensor, seen: Tensor) -> None:
    drawn.text(8, 20, "Rows ask, columns answer", "bold", "start")
    drawn.text(_LEFT + 6 * _WIDE + 22, _TOP - 8, "sum", "small")
    for i, word in enumerate(WORDS):
        drawn.slanted(_LEFT + (i + 0.4) * _WIDE, _TOP - 6, word)
        drawn.text(_LEFT - 6, _TOP + i * _HIGH + 18, word, "bold" if i == ASKED else "", "end")
        for j in range(6):
            weight = float(weights[i, j])
            place = (_LEFT + j * _WIDE, _TOP + i * _HIGH, _WIDE, _HIGH)
            drawn.cell(*place, share(weight) if seen[i, j] else "hatched", number(weight) if seen[i, j] else "")
        drawn.text(_LEFT + 6 * _WIDE + 22, _TOP + i * _HIGH + 17, number(float(weights[i].sum())), "code")
    drawn.frame(_LEFT, _TOP + ASKED * _HIGH, 6 * _WIDE, _HIGH)


def _told(row: Tensor) -> str:
    return ", ".join(f"{number(float(w))} to {word}" for word, w in zip(WORDS, row, strict=True) if float(w))
