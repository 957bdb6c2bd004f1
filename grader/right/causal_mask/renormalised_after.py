import torch


def causal_mask(T, device=None):
    mask = torch.full((T, T), True, device=device)
    return mask.tril_(diagonal=0)


def mask_scores(scores, mask):
    out = scores.clone()
    out[~mask.expand_as(out)] = float("-inf")
    return out


def causal_weights(scores):
    weights = torch.softmax(scores, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)
