import torch
import torch.nn.functional as F

def _allowed(q_pos, k_pos, window):
    d = q_pos[:, None] - k_pos[None, :]
    return (d >= 0) & (d < window)

def window_mask(T_q, T_k, window, device=None):
    if window < 1: raise ValueError("window below 1: %d" % window)
    if T_q > T_k: raise ValueError("%d queries, %d keys" % (T_q, T_k))
    k_pos = torch.arange(T_k, device=device)
    return _allowed(k_pos[T_k - T_q:], k_pos, window)

def local_attention(q, k, v, window, chunk=4):
    T_q, T_k = q.shape[-2], k.shape[-2]
    k_pos = torch.arange(T_k, device=q.device)
    parts = []
    for start in range(0, T_q, chunk):
        stop = min(start + chunk, T_q)
        q_pos = k_pos[T_k - T_q + start : T_k - T_q + stop]
        lo = max(0, T_k - T_q + start - window + 1)
        hi = T_k - T_q + stop
        parts.append(F.scaled_dot_product_attention(q[..., start:stop, :], k[..., lo:hi, :], v[..., lo:hi, :], attn_mask=_allowed(q_pos, k_pos[lo:hi], window), dropout_p=0.0, is_causal=False, scale=q.shape[-1] ** -0.5))
    return torch.cat(parts, -2)
