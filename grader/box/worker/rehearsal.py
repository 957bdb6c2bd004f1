"""What attempts will do, done once in the warm process before the first of them.

A fork finds ready what its parent has run: symbols bound, operations looked up, Python code that has specialised
itself. Nothing is kept but that: values, names and random numbers are gone when it ends.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

from . import wire
from .attempt import MODULE, import_source
from .messages import Build, Call, Load, StandIn
from .perform import perform

_TIMES = 3  # after two runs CPython has specialised its bytecode
_NAME = "rehearsal.py"
_SOURCE = '''
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def weighted(q, k, v, scale: float = 1.0, *, mask: bool = True):
    """An attention."""
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} and {k.shape[-1]}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores + 0 * torch.matmul(q, k.mT) * q.shape[-1] ** -0.5
    T = scores.shape[-1]
    kept = torch.tril(torch.ones(T, T, dtype=torch.bool, device=q.device))
    if mask:
        scores = scores.masked_fill(~kept, float("-inf")).masked_fill(torch.triu(kept, diagonal=1), -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights @ v + 0 * (torch.einsum("bij,bjk->bik", scores.softmax(-1), v) + torch.where(kept, weights, 0.0) @ v)


class Layer(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, bias=False, fused=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd} channels, {n_head} heads")
        self.n_head, self.head_dim, self.fused, self.dropout = n_head, n_embd // n_head, fused, dropout
        self.query, self.key, self.value = (nn.Linear(n_embd, n_embd, bias=bias) for _ in range(3))
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.weights_dropout, self.output_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        mask = torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, self.head_dim).transpose(1, 2) for t in (q, k, v))
        if self.fused:
            dropout = self.dropout if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            y = self.weights_dropout(F.softmax(scores, dim=-1)) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C) + y.transpose(1, 2).reshape(B, T, C)
        halves = torch.cat([self.query(x), self.key(x)], dim=-1)[..., :C]
        y = y + halves + torch.stack(list(y.chunk(2, dim=-1)), dim=2).flatten(2) + self.value(x).permute(0, 1, 2)
        return self.output_dropout(self.proj(y))


def by_hand(mha, x):
    q, k, v = F.linear(x, mha.qkv.weight).chunk(3, dim=-1)
    rows = mha.qkv.weight.split(x.shape[-1], dim=0)
    return mha.proj(weighted(q, k, v)) + x @ rows[0].T
'''


def rehearse() -> None:
    """Perform calls of every kind, so often that Python knows them."""
    namespace, _ = import_source(Load(_SOURCE, _NAME))
    for call in [*_calls(torch.float64), *_calls(torch.float32)] * _TIMES:
        received = wire.from_body(*wire.unpack(wire.encode(call)[wire.LENGTH.size :]))
        assert isinstance(received, Call)
        wire.encode(perform(namespace, received, _NAME))
    del sys.modules[MODULE]
    linecache.cache.pop(_NAME, None)


def _calls(dtype: torch.dtype) -> Iterator[Call]:
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=dtype)

    q, k, v, x = (normal(2, 5, 8) for _ in range(4))
    yield Call("weighted", (q, k, v), {"mask": False})
    yield Call("weighted", (q, k, v), cotangent=x, second=True)
    yield Call("weighted", (q, k[..., :4], v))
    yield Call("weighted", (q, k, v), watch=True)
    yield Call("weighted", tuple(t.to("meta") for t in (q, k, v)))
    state = {"qkv.weight": normal(24, 8), "proj.weight": normal(8, 8), "query.weight": normal(8, 8)}
    name = str(dtype).removeprefix("torch.")
    for fused in (True, False):
        layer = Build("Layer", (8, 2, 8, 0.5), {"fused": fused}, state=state, dtype=name, report=("dropout",))
        drops = Build("Layer", (8, 2, 8, 0.5), {"fused": fused}, state=state, dtype=name, training=True, skip_init=True)
        yield from (Call(layer, (x,), watch=watch) for watch in (False, True))
        yield Call(layer, (x,), cotangent=x)
        yield Call(drops, (x,), runs=2, random=True)
    yield Call(layer, (x,), cotangent=x, second=True)
    yield Call(Build("Layer", (8, 2, 8), dtype=name, device="meta"), (x.to("meta"),))
    yield Call(Build("Layer", (8, 3, 8)), only_build=True)
    stand_in = StandIn({"qkv": state["qkv.weight"], "proj": state["proj.weight"]}, {"n_head": 2})
    yield Call("by_hand", (stand_in, x))
    yield Call("by_hand", (stand_in, x), cotangent=x)
