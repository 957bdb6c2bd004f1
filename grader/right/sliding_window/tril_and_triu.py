import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"T_q={T_q}, T_k={T_k}, window={window}")
    ones = torch.ones(T_q, T_k, dtype=torch.bool, device=device)
    return ones.tril(T_k - T_q).triu(T_k - T_q - window + 1)


def local_attention(q, k, v, window):
    seen = window_mask(q.size(-2), k.size(-2), window, q.device)
    att = torch.einsum("...qd,...kd->...qk", q, k) * q.size(-1) ** -0.5
    return torch.einsum("...qk,...kd->...qd", att.masked_fill(seen.logical_not(), -torch.inf).softmax(-1), v)
