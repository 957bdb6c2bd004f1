import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError(f"a window of {window} keys holds nobody")
    if T_q > T_k:
        raise ValueError(f"{T_q} queries, but only {T_k} keys")
    ones = torch.ones(T_q, T_k, dtype=torch.bool, device=device)
    return ones.tril() & ones.triu(1 - window)


def local_attention(q, k, v, window):
    T_q, T_k = q.shape[-2], k.shape[-2]
    at = torch.arange(T_k - T_q, T_k, device=q.device)[:, None]
    key = torch.arange(T_k, device=q.device)
    seen = (key <= at) & (key > at - window)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
