import math

import torch


def window_mask(T_q, T_k, window, device=None, *, verbose=False):
    if window < 1 or T_q > T_k:
        raise ValueError(f"no such mask: {T_q} x {T_k}, window {window}")
    return torch.stack(
        [torch.arange(T_k, device=device).sub(T_k - T_q + i).abs().lt(window) for i in range(T_q)]
    ) & torch.ones(T_q, T_k, dtype=torch.bool, device=device).tril(T_k - T_q)


def local_attention(q, k, v, window):
    dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
    chunk, T_q, T_k, out = 4, q.shape[-2], k.shape[-2], []
    mask = window_mask(T_q, T_k, window, device=q.device)
    for start in range(0, T_q, chunk):
        rows = slice(start, min(start + chunk, T_q))
        first = max(0, T_k - T_q + start - window + 1)
        last = T_k - T_q + rows.stop
        scores = (q[..., rows, :] @ k[..., first:last, :].transpose(-1, -2)).to(dtype) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~mask[rows, first:last], -math.inf)
        out.append(scores.softmax(-1).to(v.dtype) @ v[..., first:last, :])
    return torch.cat(out, dim=-2)
