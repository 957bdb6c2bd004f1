import torch


def causal_mask(T, device=None):
    return torch.ones(T, T, device=device).tril().to(torch.bool)


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def causal_weights(scores):
    masked = mask_scores(scores, causal_mask(scores.shape[-1], scores.device))
    weights = torch.softmax(masked.float(), dim=-1)  # in float32 whatever comes in
    return weights.type_as(scores)
