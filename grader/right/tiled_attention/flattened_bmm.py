"""Leading dimensions flattened into one; baddbmm with an additive mask."""

import math

import torch


def online_softmax(scores, block):
    flat = scores.reshape(-1, scores.shape[-1])
    m = flat.new_full((flat.shape[0],), -math.inf)
    s = flat.new_zeros(flat.shape[0])
    for part in flat.split(block, dim=1):
        new = torch.maximum(m, part.max(1).values)
        s = s * (m - new).exp() + (part - new[:, None]).exp().sum(1)
        m = new
    return ((flat - m[:, None]).exp() / s[:, None]).view_as(scores)


def tiled_attention(q, k, v, block_q, block_k):
    *before, T, hd = q.shape
    q3, k3, v3 = (x.reshape(-1, T, x.shape[-1]) for x in (q, k, v))
    position = torch.arange(T, device=q.device)
    parts = []
    for rows, where in zip(q3.split(block_q, 1), position.split(block_q), strict=True):
        m = s = o = None
        for keys, values, there in zip(
            k3.split(block_k, 1), v3.split(block_k, 1), position.split(block_k), strict=True
        ):
            bias = rows.new_zeros(len(where), len(there)).masked_fill(there[None] > where[:, None], -1e9)
            x = torch.baddbmm(bias.expand(len(rows), -1, -1), rows, keys.transpose(1, 2), alpha=1 / math.sqrt(hd))
            new = x.amax(2, keepdim=True) if m is None else torch.maximum(m, x.amax(2, keepdim=True))
            p = torch.exp(x - new)
            if m is None:
                s, o = p.sum(2, keepdim=True), torch.bmm(p, values)
            else:
                s, o = s * torch.exp(m - new) + p.sum(2, keepdim=True), torch.baddbmm(o * torch.exp(m - new), p, values)
            m = new
        parts.append((o / s, m + s.log()))
    y, lse = (torch.cat(each, 1) for each in zip(*parts, strict=True))
    return y.reshape(*before, T, v.shape[-1]), lse.reshape(*before, T)
