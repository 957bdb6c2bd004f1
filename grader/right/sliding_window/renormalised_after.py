import torch


def window_mask(T_q, T_k, window, device=None):
    if window < 1:
        raise ValueError("window " + str(window))
    if T_q > T_k:
        raise ValueError("too many queries: " + str((T_q, T_k)))
    big = torch.ones(T_k, T_k, device=device).tril()
    if window < T_k:
        big = big - torch.ones(T_k, T_k, device=device).tril(-window)
    return big[T_k - T_q :].to(torch.bool)


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, device=q.device)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores - scores.detach().masked_fill(~mask, -1e30).amax(-1, keepdim=True)
    weights = scores.clamp(max=60).exp() * mask.to(scores.dtype)
    return weights @ v / weights.sum(-1, keepdim=True)
