import torch
import torch.nn.functional as F


def window_mask(T_q, T_k, window, device=None):
    assert window >= 1, f"window must be at least 1, got {window}"
    assert T_q <= T_k, f"{T_q} queries, only {T_k} keys"
    positions = torch.arange(T_k, device=device)
    distance = positions.unsqueeze(1) - positions.unsqueeze(0)
    square = torch.logical_and(distance >= 0, distance < window)
    return square[-T_q:]


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, device=q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
