import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError(f"window should be at least 1, not {window}")
    if T_q > T_k:
        raise ValueError(f"{T_q} queries are more than {T_k} keys")
    mask = torch.zeros(T_q, T_k, dtype=torch.bool, device=device)
    for i, position in enumerate(torch.arange(T_k - T_q, T_k, device=device).tolist()):
        mask[i, max(0, position - window + 1) : position + 1] = True
    assert mask.any(dim=-1).all(), "a query that sees nobody"
    return mask


def local_attention(q, k, v, window):
    T_q, T_k = q.shape[-2], k.shape[-2]
    mask = window_mask(T_q, T_k, window, device=q.device)
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    scores[..., ~mask] = float("-inf")
    weights = scores.softmax(dim=-1)
    if torch.isnan(weights).any():
        raise RuntimeError("NaN in the weights")
    return weights @ v
