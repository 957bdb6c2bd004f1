"""The figure of one causal head (03): three projections of one input, and what becomes of them."""

from __future__ import annotations

import torch
from torch import Tensor

from .drawing import Drawing, number, share, size
from .references import reference
from .words import SENTENCE, WORDS

_TOKENS = 3
_HIGH = 24
WEIGHTS = {  # two channels out of three, in round numbers that nobody learned
    "W_query": [[2.0, -1.0, 0.0], [0.0, 1.0, 1.0]],
    "W_key": [[1.0, 2.0, -1.0], [-1.0, 0.0, 2.0]],
    "W_value": [[1.0, 0.0, 1.0], [0.0, 2.0, -1.0]],
}


def self_attention() -> str:
    """x becomes q, k and v; q and k make the weights; the weights mix v."""
    x = SENTENCE[:_TOKENS]
    head = reference("self_attention", "CausalAttention")(3, 2, _TOKENS).double().eval()
    head.load_state_dict({f"{name}.weight": torch.tensor(w) for name, w in WEIGHTS.items()}, strict=False)
    with torch.no_grad():
        q, k, v = (layer(x) for layer in (head.W_query, head.W_key, head.W_value))
        answers = head(x[None])[0]
        scores = q @ k.T / 2**0.5
        weights = reference("causal_mask", "causal_weights")(scores)
    assert torch.allclose(weights @ v, answers)
    drawn = Drawing(
        "One causal head: three projections of one input",
        "x, three words of three channels, goes through W_query, W_key and W_value to q, k and v of two channels each. "
        f"q and k make the weights, in which starts gives {_listed(weights[2])} to the three words and Your, which has no "
        f"past, 1 to itself. The weights mix v to one answer a word: that of starts is {_listed(answers[2])}.",
    )
    _table(drawn, "x  (T, d_in) = (3, 3)", 103, 28, x, 38)
    for i, word in enumerate(WORDS[:_TOKENS]):
        drawn.text(95, 28 + i * _HIGH + 17, word, "small", "end")
    for i, (name, table) in enumerate(zip(("W_query → q", "W_key → k", "W_value → v"), (q, k, v), strict=True)):
        left = 12 + i * 102
        drawn.line((160, 102), (left + 46, 126), kind="arrow")
        _table(drawn, name, left, 148, table, 46)
    drawn.line((58, 222), (78, 246), kind="arrow")
    drawn.line((160, 222), (112, 246), kind="arrow")
    drawn.line((262, 222), (262, 280), kind="arrow")
    drawn.text(12, 262, "weights: scores q kᵀ / √2,", "small", "start")
    drawn.text(12, 278, "masked, then softmax", "small", "start")
    drawn.table(12, 286, weights.tolist(), 46, _HIGH, share)
    for i in range(_TOKENS):
        for j in range(i + 1, _TOKENS):
            drawn.cell(12 + j * 46, 286 + i * _HIGH, 46, _HIGH, "paper")
            drawn.cell(12 + j * 46, 286 + i * _HIGH, 46, _HIGH, "hatched")
    drawn.line((156, 322), (210, 322), kind="arrow")
    drawn.text(183, 314, "mix v", "small")
    drawn.table(216, 286, answers.tolist(), 46, _HIGH, size)
    drawn.text(262, 376, "answers (3, 2)", "small")
    drawn.text(81, 376, "(T, T) = (3, 3)", "small")
    return drawn.svg(388)


def _table(drawn: Drawing, name: str, x: float, y: float, table: Tensor, width: float) -> None:
    drawn.text(x + table.shape[1] * width / 2, y - 7, name, "bold")
    drawn.table(x, y, table.tolist(), width, _HIGH, size)


def _listed(row: Tensor) -> str:
    return " and ".join(number(value) for value in row.tolist())
