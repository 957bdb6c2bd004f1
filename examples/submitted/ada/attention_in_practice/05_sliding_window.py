import torch
import torch.nn.functional as F


def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"no such mask: {T_q} queries, {T_k} keys, a window of {window}")
    whole = torch.ones(T_k, T_k, dtype=torch.bool, device=device)
    return (whole.tril() & whole.triu(1 - window))[T_k - T_q :]


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
