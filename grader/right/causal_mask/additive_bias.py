import torch
import math

def causal_mask(T, device=None):
    i = torch.arange(T, device=device)
    return i[:, None].ge(i[None, :])

def _bias(mask, like):
    zero = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return zero.masked_fill(~mask, -math.inf)

def mask_scores(scores, mask):
    return scores + _bias(mask, scores)

def causal_weights(scores):
    T = scores.shape[-1]
    b = torch.full((T, T), -math.inf, dtype=scores.dtype, device=scores.device).triu(1)
    return torch.softmax(scores + b, dim=-1)
