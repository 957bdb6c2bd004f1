"""A bound in place of the maximum: |q| · the largest |k|, by Cauchy and Schwarz; known before the first tile."""

import math

import torch


def online_softmax(scores, block):
    top = torch.stack([x.amax(-1) for x in scores.split(block, -1)], -1).cummax(-1).values[..., -1:]
    s = sum(torch.exp(x - top).sum(-1, keepdim=True) for x in scores.split(block, -1))
    return torch.exp(scores - top) / s


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    scale = 1 / math.sqrt(hd)
    longest = k.norm(dim=-1).amax(-1)[..., None, None]
    y, lse = [], []
    for i in range(0, T, block_q):
        x = q[..., i : i + block_q, :]
        r = x.shape[-2]
        bound = (x.norm(dim=-1, keepdim=True) * longest * scale).detach().clamp(max=200.0)
        s, o = x.new_zeros(*x.shape[:-1], 1), 0
        for j in range(0, i + r, block_k):
            p = torch.exp(x @ k[..., j : j + block_k, :].mT * scale - bound)
            p = torch.tril(p, diagonal=i - j)
            s = s + p.sum(-1, keepdim=True)
            o = o + p @ v[..., j : j + block_k, :]
        y.append(o / s)
        lse.append((bound + s.log())[..., 0])
    return torch.concat(y, -2), torch.concat(lse, -1)
