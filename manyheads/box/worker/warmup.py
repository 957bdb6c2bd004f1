"""Run the operations that attempts use once in the zygote, before the first attempt.

Forks inherit the effect: bound symbols, looked-up operations, specialised bytecode. Nothing else is kept: values,
names and random numbers are discarded. Attempts can read this file, and every class repository holds it, so it uses
the operations of attention but computes nothing that an exercise asks for.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

from . import wire
from .attempt import MODULE, import_source
from .execute import execute
from .messages import Build, Call, Load, StandIn

_TIMES = 3  # CPython specialises bytecode after two runs
_NAME = "warmup.py"
_SOURCE = '''
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def operations(a, b, c, scale: float = 1.0, *, mask: bool = True):
    """Each by itself: this computes nothing in particular."""
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"{a.shape[-1]} and {b.shape[-1]}")
    T, C = a.shape[-2], a.shape[-1]
    lower = torch.tril(torch.ones(T, T, dtype=torch.bool, device=a.device))
    squares = [a @ b.transpose(-2, -1), torch.matmul(a, c.mT), torch.einsum("bij,bkj->bik", b, c)]
    squares += [squares[0].masked_fill(lower, 1.0), squares[1].masked_fill(~lower, math.inf).clamp(max=2.0)]
    squares += [torch.where(lower, squares[2], 0.0), squares[0].softmax(dim=-1), F.softmax(squares[1], dim=-1)]
    squares += [squares[2].masked_fill(torch.triu(lower, diagonal=1) == 0, -math.inf).exp()] if mask else []
    wide = [a * math.sqrt(C) / C**0.5, torch.cat([b, c], dim=-1)[..., :C], a.permute(0, 1, 2), c - b.mean(-1, keepdim=True)]
    wide += [torch.stack(list(c.chunk(2, dim=-1)), dim=2).flatten(2), a.reshape(-1, C).view(a.shape).contiguous()]
    wide += [torch.cat(torch.split(a, 1, dim=-1), dim=-1), b[:, :T], a.transpose(1, 2).transpose(1, 2)]
    return scale * sum(wide) * sum(square.sum() for square in squares)


class WarmupLayer(nn.Module):
    def __init__(self, n_in, n_out, size, dropout=0.0, bias=False):
        super().__init__()
        if n_out % 2 != 0:
            raise ValueError(f"{n_in} channels in, {n_out} out")
        self.n_out, self.dropout = n_out, dropout
        self.first, self.second, self.third = (nn.Linear(n_in, n_in, bias=bias) for _ in range(3))
        self.wide, self.last = nn.Linear(n_in, 3 * n_in, bias=bias), nn.Linear(n_in, n_out, bias=bias)
        self.losing = nn.Dropout(p=dropout)
        self.register_buffer("table", torch.tril(torch.ones(size, size)).view(1, 1, size, size), persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        parts = [t.view(B, T, 2, C // 2).transpose(1, 2) for t in self.wide(x).split(C, dim=2)]
        fused = F.scaled_dot_product_attention(*parts[::-1], dropout_p=self.dropout * self.training)
        rows = parts[0].sum(-1, keepdim=True).masked_fill(self.table[:, :, :T, :1] == 0, 0.0)
        y = (fused + self.losing(rows)).transpose(1, 2).contiguous().view(B, T, C)
        y = y + self.losing(self.first(x) * self.second(x)) + fused.transpose(1, 2).reshape(B, T, C)
        return self.last(y + operations(x, self.third(x), y))


def with_layers(given, x):
    C = x.shape[-1]
    a, b, c = F.linear(x, given.wide.weight).chunk(3, dim=-1)
    return given.last(a * b + c) + x @ given.wide.weight.split(C, dim=0)[0].T
'''


def warm_up() -> None:
    """Execute calls of every kind, often enough for CPython to specialise the bytecode."""
    _, namespace, _ = import_source(Load(_SOURCE, _NAME))
    for call in [*_calls(torch.float64), *_calls(torch.float32)] * _TIMES:
        received = wire.decode(wire.encode(call))
        assert isinstance(received, Call)
        wire.encode(execute(namespace, received, _NAME))
    del sys.modules[MODULE]
    linecache.cache.pop(_NAME, None)


def _calls(dtype: torch.dtype) -> Iterator[Call]:
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=dtype)

    a, b, c, x = (normal(2, 5, 8) for _ in range(4))
    yield Call("operations", (a, b, c), {"mask": False})
    yield Call("operations", (a, b, c), cotangent=x, second=True)
    yield Call("operations", (a, b[..., :4], c))
    yield Call("operations", (a, b, c), watch=True)
    yield Call("operations", tuple(t.to("meta") for t in (a, b, c)))
    state = {"wide.weight": normal(24, 8), "last.weight": normal(8, 8), "first.weight": normal(8, 8)}
    name = str(dtype).removeprefix("torch.")
    layer = Build("WarmupLayer", (8, 8, 6, 0.5), state=state, dtype=name, report=("dropout",))
    drops = Build("WarmupLayer", (8, 8, 6), {"dropout": 0.5}, state=state, dtype=name, training=True, skip_init=True)
    yield from (Call(layer, (x,), watch=watch) for watch in (False, True))
    yield Call(layer, (x,), cotangent=x)
    yield Call(drops, (x,), runs=2, random=True)
    yield Call(Build("WarmupLayer", (8, 8, 6), dtype=name, device="meta"), (x.to("meta"),), watch=True)
    yield Call(Build("WarmupLayer", (8, 3, 6)), only_build=True)
    stand_in = StandIn({"wide": state["wide.weight"], "last": state["last.weight"]}, {"n_head": 2})
    yield Call("with_layers", (stand_in, x))
    yield Call("with_layers", (stand_in, x), cotangent=x)
