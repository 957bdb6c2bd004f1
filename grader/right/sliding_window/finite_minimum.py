import math

import torch


def window_mask(T_q, T_k, window, device=None):
    print("window_mask", T_q, T_k, window)
    if window < 1 or T_k - T_q < 0:
        raise ValueError(f"cannot make a ({T_q}, {T_k}) mask with a window of {window}")
    offset = T_k - T_q
    causal = torch.tril(torch.ones((T_q, T_k), device=device), diagonal=offset)
    far = torch.tril(torch.ones((T_q, T_k), device=device), diagonal=offset - window)
    return (causal - far).bool()


def local_attention(q, k, v, window):
    mask = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    scores = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
    scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    exps = scores.exp()
    return (exps / exps.sum(dim=-1, keepdim=True)) @ v
