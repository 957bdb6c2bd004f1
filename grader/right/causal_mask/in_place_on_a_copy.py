import torch


def causal_mask(T, *, device=None):
    return torch.ones((T, T), device=device, dtype=torch.bool).tril(0)


def mask_scores(scores, mask):
    masked = scores.clone()
    return masked.masked_fill_(~mask, float("-inf"))


def causal_weights(scores):
    T = scores.shape[-2]
    masked = mask_scores(scores, causal_mask(T, device=scores.device))
    shifted = masked - masked.amax(dim=-1, keepdim=True)
    weights = shifted.exp()
    return weights.div(weights.sum(dim=-1, keepdim=True))
