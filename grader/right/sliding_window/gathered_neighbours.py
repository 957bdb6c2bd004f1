"""Each query gathers its window of keys and values: no (T_q, T_k) table of scores at all."""

import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if not (window >= 1 and T_q <= T_k):
        raise ValueError(f"refused: T_q={T_q}, T_k={T_k}, window={window}")
    mask = torch.zeros(T_q, T_k, dtype=torch.bool, device=device)
    for i in range(T_q):
        here = T_k - T_q + i
        mask[i, max(here - window + 1, 0) : here + 1] = True
    return mask


def local_attention(q, k, v, window):
    T_q, T_k = q.size(-2), k.size(-2)
    window = min(window, T_k)
    own = torch.arange(T_k - T_q, T_k, device=q.device)
    which = own[:, None] - torch.arange(window - 1, -1, -1, device=q.device)  # (T_q, window)
    keys, values = k[..., which.clamp(min=0), :], v[..., which.clamp(min=0), :]
    scores = (q.unsqueeze(-2) * keys).sum(-1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(which < 0, -math.inf).softmax(-1)
    return (weights.unsqueeze(-1) * values).sum(-2)
