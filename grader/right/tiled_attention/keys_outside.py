"""The outer loop is over keys: all queries carry their state at once, in lists of blocks."""

import math

import torch


def online_softmax(scores: torch.Tensor, block: int) -> torch.Tensor:
    length = scores.shape[-1]
    number = math.ceil(length / block)
    running_max = torch.full(scores.shape[:-1], -math.inf, dtype=scores.dtype, device=scores.device)
    running_sum = torch.zeros_like(running_max)
    for n in range(number):
        part = scores.narrow(-1, n * block, min(block, length - n * block))
        new_max = torch.maximum(running_max, part.amax(dim=-1))
        running_sum = running_sum.mul(running_max.sub(new_max).exp()).add(part.sub(new_max.unsqueeze(-1)).exp().sum(-1))
        running_max = new_max
    return scores.sub(running_max.unsqueeze(-1)).exp().div(running_sum.unsqueeze(-1))


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    queries = [x / math.sqrt(q.shape[-1]) for x in q.split(block_q, -2)]
    state = [(x.new_full((*x.shape[:-1], 1), -math.inf), x.new_zeros((*x.shape[:-1], 1)), 0.0) for x in queries]
    for left, (keys, values) in zip(range(0, T, block_k), zip(k.split(block_k, -2), v.split(block_k, -2)), strict=True):
        cols = left + torch.arange(keys.shape[-2], device=q.device)
        for n, x in enumerate(queries):
            rows = n * block_q + torch.arange(x.shape[-2], device=q.device)
            if left > n * block_q + x.shape[-2] - 1:
                continue
            m, s, o = state[n]
            scores = (x @ keys.transpose(-2, -1)).masked_fill(cols > rows.unsqueeze(-1), -math.inf)
            new = torch.maximum(m, scores.max(-1, keepdim=True)[0])
            p = (scores - new).exp()
            old = (m - new).exp()
            state[n] = (new, s * old + p.sum(-1, True), o * old + p @ values)
    y = torch.cat([o / s for m, s, o in state], -2)
    return y, torch.cat([(m + torch.log(s)).flatten(-2) for m, s, o in state], -1)
