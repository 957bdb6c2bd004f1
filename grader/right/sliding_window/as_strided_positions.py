"""Numbers are bent into the band: one long row of False and True, read with a shift of one per row."""

import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError(f"a window of {window}")
    if T_q > T_k:
        raise ValueError(f"{T_q} queries for {T_k} keys")
    line = torch.zeros(2 * T_k + T_q, dtype=torch.bool, device=device)
    stop = T_k + 1
    line[max(stop - window, 0) : stop] = True
    return torch.stack([line[T_q - i : T_q - i + T_k] for i in range(T_q)])


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    scores = torch.baddbmm(
        torch.zeros(1, 1, 1, dtype=q.dtype, device=q.device),
        q.reshape(-1, *q.shape[-2:]),
        k.reshape(-1, *k.shape[-2:]).mT,
        alpha=q.shape[-1] ** -0.5,
    )
    weights = scores.masked_fill(~mask, float("-inf")).log_softmax(-1).exp()
    return (weights @ v.reshape(-1, *v.shape[-2:])).reshape(*q.shape[:-1], v.shape[-1])
