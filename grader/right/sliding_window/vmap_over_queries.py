import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"{T_q} queries, {T_k} keys, window {window}")
    keys = torch.arange(T_k, device=device)
    queries = torch.arange(T_k - T_q, T_k, device=device)
    return torch.vmap(lambda at: (keys <= at) & (at - keys < window))(queries)


def local_attention(q, k, v, window):
    T_q, T_k = q.shape[-2], k.shape[-2]
    mask = window_mask(T_q, T_k, window, q.device)

    def one(query, seen):
        scores = (k @ query.unsqueeze(-1)).squeeze(-1) / math.sqrt(query.shape[-1])
        weights = torch.softmax(torch.where(seen, scores, -math.inf), dim=-1)
        return (weights.unsqueeze(-2) @ v).squeeze(-2)

    return torch.stack([one(q[..., i, :], mask[i]) for i in range(T_q)], dim=-2)
