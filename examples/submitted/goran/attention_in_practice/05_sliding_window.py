import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError("window must be at least 1")
    if T_q > T_k:
        raise ValueError("more queries than keys")
    q_pos = torch.arange(T_k - T_q, T_k, device=device)[:, None]
    k_pos = torch.arange(T_k, device=device)[None, :]
    distance = q_pos - k_pos
    return (distance >= 0) & (distance <= window)


def local_attention(q, k, v, window):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    mask = window_mask(q.size(-2), k.size(-2), window, device=q.device)
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1) @ v
