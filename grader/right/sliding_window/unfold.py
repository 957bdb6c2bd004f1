import math

import torch
import torch.nn.functional as F


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError(f"{window=}")
    if T_q > T_k:
        raise ValueError(f"{T_q=} > {T_k=}")
    band = torch.ones(T_q, T_k, dtype=torch.bool, device=device)
    band = band & ~torch.ones_like(band).triu(T_k - T_q + 1)
    return band & ~torch.ones_like(band).tril(T_k - T_q - window)


def local_attention(q, k, v, window):
    T_q, T_k = q.shape[-2], k.shape[-2]
    pad = window - 1
    keys = F.pad(k, (0, 0, pad, 0)).unfold(-2, window, 1)[..., T_k - T_q :, :, :]  # (..., T_q, hd, window)
    values = F.pad(v, (0, 0, pad, 0)).unfold(-2, window, 1)[..., T_k - T_q :, :, :]
    real = torch.arange(T_k - T_q, T_k, device=q.device)[:, None] - pad + torch.arange(window, device=q.device) >= 0
    scores = (q.unsqueeze(-2) @ keys).squeeze(-2) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~real, float("-inf")), -1)
    return (values @ weights.unsqueeze(-1)).squeeze(-1)
