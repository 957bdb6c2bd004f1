import torch
from einops import rearrange


def causal_mask(T, device=None):
    """The identity, summed from the right: row i is 1 up to column i."""
    return torch.eye(T, device=device).flip(1).cumsum(1).flip(1) > 0


def _helper(scores):
    lead = scores.shape[:-2]
    flat = scores.reshape(-1, *scores.shape[-2:])
    keys_first = rearrange(flat, "n q k -> n k q")
    hidden = ~causal_mask(scores.shape[-1], scores.device).mT
    weights = keys_first.masked_fill(hidden, float("-inf")).softmax(dim=1)
    return rearrange(weights, "n k q -> n q k").reshape(*lead, *scores.shape[-2:])


def mask_scores(scores, mask):
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, not {mask.dtype}")
    masked = scores.detach().clone().requires_grad_(False) if not scores.requires_grad else scores * 1
    masked[(~mask).expand(masked.shape)] = -torch.inf
    return masked


def causal_weights(scores):
    if scores.shape[-1] != scores.shape[-2]:
        raise ValueError(f"not square: {tuple(scores.shape)}")
    return _helper(scores)
