import math
import torch

def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"{T_q}, {T_k}, {window}")
    ones = torch.ones(T_q, T_k, dtype=torch.bool, device=device)
    return ones.tril(T_k - T_q) & ones.triu(T_k - T_q - window + 1)

def local_attention(q, k, v, window):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
