import torch

HIDDEN = -1e4


def causal_mask(T, device=None):
    rows, columns = torch.tril_indices(T, T)
    mask = torch.zeros(T, T, dtype=torch.bool)
    mask[rows, columns] = True
    return mask.to(device)


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(HIDDEN, dtype=scores.dtype, device=scores.device))


def causal_weights(scores):
    T = scores.shape[-1]
    return mask_scores(scores, causal_mask(T, device=scores.device)).softmax(-1)
