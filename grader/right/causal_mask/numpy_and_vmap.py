import numpy as np
import torch


def causal_mask(T, device=None):
    return torch.from_numpy(np.tri(T, dtype=bool)).to(device)


def _one_row(row, mask):
    return torch.where(mask, row, -torch.inf)


def mask_scores(scores, mask):
    f = _one_row
    for _ in range(scores.dim() - 1):
        f = torch.vmap(f)
    return f(scores, mask.broadcast_to(scores.shape))


def causal_weights(scores):
    return torch.softmax(mask_scores(scores, causal_mask(scores.shape[-1], scores.device)), -1)
