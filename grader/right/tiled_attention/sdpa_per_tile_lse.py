"""Whole tiles go through SDPA, and are joined by their lse."""

import math

import torch
import torch.nn.functional as F


def online_softmax(scores, block):
    m = scores.new_tensor(-math.inf)
    s = scores.new_tensor(0.0)
    for x in scores.split(block, -1):
        m, old = torch.maximum(m, x.amax(-1, keepdim=True)), m
        s = s * (old - m).exp() + (x - m).exp().sum(-1, keepdim=True)
    lse = m + s.log()
    return (scores - lse).exp()


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    ys, logs = [], []
    for i in range(0, T, block_q):
        x = q[..., i : i + block_q, :]
        rows = torch.arange(i, i + x.shape[-2], device=q.device)
        y = lse = None
        for j in range(0, i + x.shape[-2], block_k):
            keys, values = k[..., j : j + block_k, :], v[..., j : j + block_k, :]
            allowed = torch.arange(j, j + keys.shape[-2], device=q.device) <= rows[:, None]
            bias = torch.zeros(allowed.shape, dtype=q.dtype, device=q.device).masked_fill(~allowed, -1e6)
            mine = F.scaled_dot_product_attention(x, keys, values, attn_mask=bias)
            here = torch.logsumexp(x @ keys.mT / math.sqrt(hd) + bias, -1, keepdim=True)
            if y is None:
                y, lse = mine, here
            else:
                share = torch.sigmoid(here - lse)
                y, lse = y * (1 - share) + mine * share, torch.logaddexp(lse, here)
        ys.append(y)
        logs.append(lse.squeeze(-1))
    return torch.cat(ys, -2), torch.cat(logs, -1)
