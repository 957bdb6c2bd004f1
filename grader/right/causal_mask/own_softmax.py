import math
import torch


def _softmax(z):
    z = z - z.max(dim=-1, keepdim=True).values
    e = torch.exp(z)
    return e / torch.sum(e, dim=-1, keepdim=True)


def causal_mask(T: int, device=None) -> torch.Tensor:
    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
    for t in range(T):
        mask[t, : t + 1] = True
    return mask


def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, scores, scores.new_full((), -math.inf))


def causal_weights(scores: torch.Tensor) -> torch.Tensor:
    return _softmax(mask_scores(scores, causal_mask(scores.shape[-1], device=scores.device)))
