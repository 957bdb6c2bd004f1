"""A function of tiles, small enough to see through, and attempts at it."""

from __future__ import annotations

import math

import torch

from manyheads.box.worker.answers import Traced
from manyheads.box.worker.messages import Call, TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.course.plot_and_bench import Tiled
from manyheads.course.shapes import parse_signature
from manyheads.student.axes import Axes
from manyheads.student.crops import TABLES, TIMES
from manyheads.student.example import Example
from manyheads.student.heads import Tiles

T, ROWS, COLUMNS = 7, 4, 3
SHAPES = parse_signature("(q: (nh, T, hd), k: (nh, T, hd), rows: r, columns: c) -> (nh, T)")
TILED = Tiled(queries="q", keys="k", rows="rows", columns="columns")
Q, K = torch.randn(2, 2, T, 5, generator=torch.Generator().manual_seed(3)).unbind()
SCORES = (Q[0] @ K[0].mT).masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
BOXES = [(0, 0, 4, 3), (0, 3, 4, 3), (4, 0, 3, 3), (4, 3, 3, 3), (4, 6, 3, 1)]
RIGHT = """
import math, torch
def summed(q, k, rows, columns):
    T = q.shape[-2]
    sums = []
    for top in range(0, T, rows):
        x = q[..., top : top + rows, :]
        m, s = torch.full_like(x[..., 0], -math.inf), torch.zeros_like(x[..., 0])
        for left in range(0, top + x.shape[-2], columns):
            y = k[..., left : left + columns, :]
            hidden = torch.arange(left, left + y.shape[-2]) > torch.arange(top, top + x.shape[-2])[:, None]
            scores = (x @ y.mT).masked_fill(hidden, -math.inf)
            new = torch.maximum(m, scores.amax(-1))
            p = (scores - new[..., None]).exp()
            s = s * (m - new).exp() + p.sum(-1)
            m = new
        sums.append(m + s.log())
    return torch.cat(sums, -1)
"""
CALL = Call("summed", (Q, K, ROWS, COLUMNS))


def example_of(call: Call = CALL, tiles: Tiles | None = None) -> Example:
    """The call as an example; its answer is that of the whole square."""
    q, k = call.args[:2]
    assert isinstance(q, torch.Tensor)
    assert isinstance(k, torch.Tensor)
    tokens = q.shape[-2]
    hidden = torch.ones(tokens, tokens).triu(1).bool()
    expected = (q @ k.mT).masked_fill(hidden, -math.inf).logsumexp(-1)
    axes = Axes({"nh": 2, "T": tokens, "hd": 5})
    return Example(call, expected, True, SHAPES, axes, tiled=TILED, tiles=tiles)


RECORDED = example_of(tiles=Tiles(torch.tensor(BOXES, dtype=torch.float32), SCORES))


def traced(source: str, call: Call = CALL) -> Traced:
    """This source's call, traced."""
    namespace: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(call, TABLES, TIMES), "a.py")
