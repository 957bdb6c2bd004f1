"""Two neighbouring pieces are joined by one function; the row is folded with it."""

import functools
import math

import torch


def joined(a, b):
    (m1, s1, o1), (m2, s2, o2) = a, b
    m = torch.maximum(m1, m2)
    f1, f2 = torch.exp(m1 - m), torch.exp(m2 - m)
    return m, s1 * f1 + s2 * f2, o1 * f1 + o2 * f2


def piece(x, values):
    m = x.amax(-1, keepdim=True)
    m = torch.where(m == -math.inf, torch.zeros_like(m), m)
    p = torch.exp(x - m)
    return m, p.sum(-1, keepdim=True), p @ values


def online_softmax(scores, block):
    def of(x):
        m = x.amax(-1, keepdim=True)
        return m, torch.exp(x - m).sum(-1, keepdim=True), torch.zeros_like(m)

    m, s, _ = functools.reduce(joined, map(of, scores.split(block, -1)))
    return torch.cat([torch.exp(x - m) / s for x in scores.split(block, -1)], -1)


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    where = torch.arange(T, device=q.device)

    def block_of(rows, r):
        tiles = []
        for keys, values, c in zip(k.split(block_k, -2), v.split(block_k, -2), where.split(block_k), strict=True):
            if int(c.shape[0]) and True:
                x = torch.einsum("...id,...jd->...ij", rows, keys) / math.sqrt(rows.shape[-1])
                tiles.append(piece(x.masked_fill(c[None, :] > r[:, None], -math.inf), values))
        m, s, o = functools.reduce(joined, tiles)
        return o / s, (m + s.log()).squeeze(-1)

    found = [block_of(rows, r) for rows, r in zip(q.split(block_q, -2), where.split(block_q), strict=True)]
    return [torch.cat([y for y, _ in found], dim=-2), torch.cat([lse for _, lse in found], dim=-1)]
