"""A beginner's loops: within a tile every query goes alone."""

import math

import torch


def online_softmax(scores, block):
    biggest = None
    total = None
    start = 0
    while start < scores.shape[-1]:
        chunk = scores[..., start : start + block]
        chunk_max = chunk.max(dim=-1, keepdim=True).values
        if biggest is None:
            biggest = chunk_max
            total = torch.exp(chunk - biggest).sum(dim=-1, keepdim=True)
        else:
            new_biggest = torch.max(biggest, chunk_max)
            total = total * torch.exp(biggest - new_biggest)
            total = total + torch.exp(chunk - new_biggest).sum(dim=-1, keepdim=True)
            biggest = new_biggest
        start = start + block
    weights = []
    start = 0
    while start < scores.shape[-1]:
        chunk = scores[..., start : start + block]
        weights.append(torch.exp(chunk - biggest) / total)
        start += block
    return torch.cat(weights, dim=-1)


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    rows, logs = [], []
    for t in range(T):
        query = q[..., t, :].unsqueeze(-2)
        m, s, o = None, None, None
        for start in range(0, t + 1, block_k):
            stop = min(start + block_k, t + 1)  # the future is not even sliced
            scores = (query * k[..., start:stop, :]).sum(-1) / math.sqrt(q.shape[-1])
            here = scores.max(-1, keepdim=True).values
            new = here if m is None else torch.max(m, here)
            p = torch.exp(scores - new)
            add = (p.unsqueeze(-1) * v[..., start:stop, :]).sum(-2)
            if m is None:
                s, o = p.sum(-1, keepdim=True), add
            else:
                s = s * torch.exp(m - new) + p.sum(-1, keepdim=True)
                o = o * torch.exp(m - new) + add
            m = new
        rows.append(o / s)
        logs.append((m + torch.log(s)).squeeze(-1))
    return torch.stack(rows, dim=-2), torch.stack(logs, dim=-1)
