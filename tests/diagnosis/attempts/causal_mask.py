import torch

def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()

def mask_scores(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)

def causal_weights(scores):
    return mask_scores(scores, torch.ones_like(scores).tril().bool()).softmax(-1)
