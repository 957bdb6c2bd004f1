"""The sum is one more channel of the values: a column of ones."""

import math

import torch
import torch.nn.functional as F


def online_softmax(scores, block):
    m, s = torch.tensor(-math.inf, dtype=scores.dtype, device=scores.device), 0.0
    for x in scores.split(block, -1):
        new = torch.maximum(m, x.amax(-1, keepdim=True))
        s = s * torch.exp(m - new) + torch.exp(x - new) @ torch.ones(x.shape[-1], 1, dtype=x.dtype, device=x.device)
        m = new
    return torch.exp(scores - m) / s


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    wide = F.pad(v, (0, 1), value=1.0)
    found = []
    for i in range(0, T, block_q):
        x = q[..., i : i + block_q, :]
        m, o = -math.inf, 0.0
        for j in range(0, min(T, i + block_q), block_k):
            part = wide[..., j : j + block_k, :]
            scores = torch.matmul(x, k[..., j : j + block_k, :].movedim(-1, -2)) / hd**0.5
            n, c = scores.shape[-2:]
            keep = torch.ones(n, c, dtype=torch.bool, device=q.device).tril(i - j)
            scores = scores.masked_fill(keep.logical_not(), -math.inf)
            top = scores.amax(-1, keepdim=True)
            new = top if j == 0 else torch.maximum(m, top)
            p = torch.exp(scores - new)
            o = p @ part if j == 0 else o * torch.exp(m - new) + p @ part
            m = new
        found.append((o, m))
    whole = torch.cat([o for o, _ in found], -2)
    m = torch.cat([m for _, m in found], -2)
    return whole[..., :-1] / whole[..., -1:], (m + whole[..., -1:].log()).squeeze(-1)
