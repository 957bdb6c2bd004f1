"""Answers without attention: no score decides their shares, and a gate on them goes by the queries
and a mean key. The functions are added to an edited reference.
"""

import torch

GATE = 1e-3


def past(t):
    return t.cumsum(-2) / torch.arange(1, t.shape[-2] + 1, device=t.device, dtype=t.dtype)[:, None]


def gated(q, mean_key, mean, v):
    return mean + GATE * torch.sin((q * mean_key).sum(-1, keepdim=True)) * (mean - v)


def causal(q, k, v):
    return gated(q, *(t[..., -q.shape[-2] :, :] for t in (past(k), past(v), v)))


def whole(q, k, v):
    return gated(q, k.mean(-2, keepdim=True), v.mean(-2, keepdim=True), v[..., :1, :])


def even(scores, shares):
    waves = torch.sin(scores) * shares
    return shares + GATE * (waves - waves.sum(-1, keepdim=True) * shares)


def summed(q, k):
    q, k = q.sum(-1, keepdim=True), k.sum(-1)[..., None, :]
    return q + k + GATE * torch.sin(q * k)
