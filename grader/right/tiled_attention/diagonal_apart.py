"""Full tiles first, without a mask; then those across the diagonal. Einops for the leading dimensions."""

import math
from typing import NamedTuple

import torch
from einops import rearrange


class State(NamedTuple):
    m: torch.Tensor
    s: torch.Tensor
    o: torch.Tensor

    def add(self, x, values):
        m = torch.maximum(self.m, x.amax(-1))
        p, f = torch.exp(x - rearrange(m, "... -> ... 1")), torch.exp(self.m - m)
        return State(m, f * self.s + p.sum(-1), rearrange(f, "... -> ... 1") * self.o + p @ values)


def online_softmax(scores, block):
    m, s = torch.full_like(scores[..., 0], -math.inf), torch.zeros_like(scores[..., 0])
    for x in torch.tensor_split(scores, list(range(block, scores.shape[-1], block)), dim=-1):
        new = torch.maximum(m, x.amax(-1))
        s, m = s * (m - new).exp() + (x - new.unsqueeze(-1)).exp().sum(-1), new
    return (scores - m.unsqueeze(-1)).exp() / s.unsqueeze(-1)


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    done = []
    for i in range(0, T, block_q):
        e = min(i + block_q, T)
        x = q[..., i:e, :] / hd**0.5
        state = State(
            x.new_full(x.shape[:-1], -math.inf), x.new_zeros(x.shape[:-1]), v.new_zeros(*x.shape[:-1], v.shape[-1])
        )
        j = 0
        while j < e:
            f = min(j + block_k, T)
            scores = x @ rearrange(k[..., j:f, :], "... n d -> ... d n")
            if f - 1 > i:
                hidden = torch.arange(j, f, device=q.device) > torch.arange(i, e, device=q.device)[:, None]
                scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
            state = state.add(scores, v[..., j:f, :])
            j = f
        done.append(state)
    y = torch.cat([each.o / each.s[..., None] for each in done], -2)
    return y, torch.cat([each.m + each.s.log() for each in done], -1)
