import torch


def causal_mask(T, device=None):
    future = torch.triu(torch.full((T, T), True, device=device), diagonal=1)
    return ~future


def _additive(mask, dtype):
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(~mask, -torch.inf)


def mask_scores(scores, mask):
    return scores + _additive(mask, scores.dtype)


def causal_weights(scores):
    mask = causal_mask(scores.shape[-1], device=scores.device)
    return torch.log_softmax(mask_scores(scores, mask), dim=-1).exp()
