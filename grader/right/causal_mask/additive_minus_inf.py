import torch
import torch.nn.functional as F


def causal_mask(T, device=None):
    return torch.tril(torch.ones((T, T), device=device)) == 1


def mask_scores(scores, mask):
    bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, float("-inf"))
    return scores + bias


def causal_weights(scores):
    bias = torch.full_like(scores[..., :, :], float("-inf")).triu(1)
    return F.softmax(scores + bias, dim=-1)
