import torch


def causal_mask(T, device=None):
    pos = torch.arange(T, device=device)
    return pos[:, None] >= pos[None, :]


def mask_scores(scores, mask):
    return torch.where(mask, scores, float("-inf"))


def causal_weights(scores):
    T = scores.size(-1)
    return torch.softmax(mask_scores(scores, causal_mask(T, scores.device)), dim=-1)
