import torch


def causal_mask(T, device=None):
    return ~torch.triu(torch.ones(T, T, dtype=torch.bool, device=device), diagonal=1)


def mask_scores(scores, mask):
    return scores.masked_fill(mask.logical_not(), -torch.inf)


def causal_weights(scores):
    T = scores.size(-1)
    return torch.softmax(mask_scores(scores, causal_mask(T, scores.device)), -1)
