"""Figures of the stacked weight (06), and of what the heads of a trained model look at (07)."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from manyheads.student.example import with_recorded
from manyheads.student.recorded_training import SENTENCE
from manyheads.student.sentence import sentence_examples

from .drawing import Drawing, number, share
from .references import exercise, reference

TOKENS = [[1.0, 0.0, 2.0, 1.0], [2.0, 1.0, 1.0, 0.0], [1.0, 3.0, 0.0, 2.0]]
KEY = [[0.0, 1.0, 0.0, 0.0], [0.0] * 4, [0.0, 0.0, 0.0, 1.0], [0.0] * 4]  # lesson 6: a head's second channel, then 0
_HEADS, _HEAD_DIM, _C = 2, 2, 4


def mha_by_loop() -> str:
    """Which rows of the stacked weight one head reads, and where its answer goes."""
    stacked = torch.cat([torch.eye(_C), torch.tensor(KEY), torch.eye(_C)])
    qkv, proj = nn.Linear(_C, 3 * _C, bias=False), nn.Linear(_C, _C, bias=False)
    qkv.load_state_dict({"weight": stacked})
    proj.load_state_dict({"weight": torch.eye(_C)})
    mha = SimpleNamespace(qkv=qkv.double(), proj=proj.double(), n_head=_HEADS, head_dim=_HEAD_DIM)
    with torch.no_grad():
        told = reference("mha_by_loop", "mha_by_loop")(mha, torch.tensor([TOKENS], dtype=torch.float64))[0]
    drawn = Drawing(
        "Head 1 reads its own rows of the stacked weight",
        "qkv.weight has 12 rows: four for queries, four for keys, four for values. Of each four, head 0 owns the first two "
        "and head 1 the last two: rows 2, 3, then 6, 7, then 10, 11. Side by side, head 0 and head 1 say: "
        + "; ".join(f"token {t}: {_list(row)}" for t, row in enumerate(told))
        + ".",
    )
    drawn.text(132, 20, "qkv.weight (3C, C) = (12, 4)", "bold")
    for row in range(3 * _C):
        owner = row % _C // _HEAD_DIM
        for j, value in enumerate(stacked[row].tolist()):
            drawn.cell(88 + j * 28, 30 + row * 20, 28, 20, "ab"[owner], number(value))
        drawn.text(82, 45 + row * 20, f"row {row}", "small", "end")
    for block, name in enumerate(("Wq", "Wk", "Wv")):
        top = 30 + block * 80
        drawn.text(3, top + 46, name, "bold", "start")
        drawn.line((33, top + 3), (30, top + 3), (30, top + 77), (33, top + 77))
        drawn.frame(88, top + 40, 112, 40)
        drawn.text(208, top + 25, "head 0", "small", "start")
        drawn.text(208, top + 65, f"head 1: its {'qkv'[block]}", "small", "start")
    drawn.text(8, 298, "The answers lie side by side, in the heads’ order:", "small", "start")
    drawn.text(56 + 65, 320, "head 0 says", "bold")
    drawn.text(56 + 195, 320, "head 1 says", "bold")
    for t, answer in enumerate(told.tolist()):
        drawn.text(8, 345 + t * 26, f"token {t}", "small", "start")
        for j, value in enumerate(answer):
            drawn.cell(56 + j * 65, 328 + t * 26, 65, 26, "ab"[j // _HEAD_DIM], number(value))
    drawn.frame(56 + 130, 328, 130, 78)
    return drawn.svg(418)


ASKED = SENTENCE.index("cabinet") + len("cabinet")  # the letters up to its last t
_CELL, _HIGH = 9.8, 24


def fused_qkv() -> str:
    """Where each head of a trained model looks from the last letter of "cabinet"."""
    exercise_ = exercise("fused_qkv")
    blocks = [e.heads for e in with_recorded(sentence_examples(exercise_), exercise_)]
    letters = SENTENCE[:ASKED]
    told: list[str] = []
    drawn = Drawing("What eight heads of a trained model look at")
    drawn.text(8, 20, "From the last t: where do the heads look?", "bold", "start")
    y = 44
    for number_of_block, heads in enumerate(blocks, 1):
        assert heads is not None
        drawn.text(8, y, f"block {number_of_block}", "bold", "start")
        drawn.text(317, y + 18, "most", "small", "end")
        y += 18
        for i, letter in enumerate(letters):
            drawn.text(_left(i) + _CELL / 2, y, "␣" if letter == " " else letter, "code")
        for h, table in enumerate(heads.weights):
            row = table[ASKED - 1, :ASKED].double()
            told.append(_row(drawn, y + 8 + h * _HIGH, f"head {h}", row, letters))
        y += 8 + len(heads.weights) * _HIGH + 22
    drawn.text(8, y - 6, "Framed is each head’s strongest look, with its", "small", "start")
    drawn.text(8, y + 11, "number beside it. ␣ is a blank.", "small", "start")
    drawn.words = f"From the last letter of “{letters}”, the strongest look of each head, in block 1 and in block 2: "
    drawn.words += f"{'; '.join(told)}."
    return drawn.svg(y + 22)


def _row(drawn: Drawing, y: float, name: str, weights: Tensor, letters: str) -> str:
    """A head's row of cells, with its greatest number; the same in words."""
    drawn.text(8, y + 17, name, "small", "start")
    for i, weight in enumerate(weights.tolist()):
        drawn.cell(_left(i), y, _CELL, _HIGH - 4, share(weight))
    best = int(weights.argmax())
    most = number(float(weights[best]))
    drawn.frame(_left(best), y, _CELL, _HIGH - 4)
    drawn.text(317, y + 15, most, "code", "end")
    back = len(letters) - 1 - best
    where = f"{back} back" if back else "itself"
    return f"{name} gives {most} to {'a blank' if letters[best] == ' ' else letters[best]}, {where}"


def _left(i: int) -> float:
    return round(56 + i * _CELL, 1)


def _list(row: Tensor) -> str:
    return ", ".join(number(value) for value in row.tolist())
