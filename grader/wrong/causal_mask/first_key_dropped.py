import torch


def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


def causal_weights(scores):
    mask = causal_mask(scores.shape[-1], device=scores.device)
    return torch.softmax(mask_scores(scores, mask), dim=-1).index_fill(-1, torch.tensor([0], device=scores.device), 0.0)
