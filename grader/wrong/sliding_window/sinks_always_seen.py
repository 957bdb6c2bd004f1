import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"{T_q}, {T_k}, {window}")
    query = torch.arange(T_k - T_q, T_k, device=device)[:, None]
    key = torch.arange(T_k, device=device)
    return (key <= query) & ((key > query - window) | (key == 0))


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, device=q.device)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return weights @ v
