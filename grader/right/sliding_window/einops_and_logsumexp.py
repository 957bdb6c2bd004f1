import torch
from einops import einsum, rearrange


def window_mask(T_q, T_k, window, device=None):
    if min(window, T_k - T_q + 1) < 1:
        raise ValueError(f"T_q {T_q}, T_k {T_k}, window {window}")
    q_at = rearrange(torch.arange(T_q, device=device) + T_k - T_q, "q -> q 1")
    k_at = rearrange(torch.arange(T_k, device=device), "k -> 1 k")
    back = q_at - k_at
    return back.ge(0).logical_and(back.lt(window))


def local_attention(q, k, v, window):
    scores = einsum(q, k, "... q d, ... k d -> ... q k") * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~window_mask(*scores.shape[-2:], window, scores.device), -float("inf"))
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return einsum(weights, v, "... q k, ... k d -> ... q d")
