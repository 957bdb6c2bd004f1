import torch


def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.uint8, device=device).tril().bool()


def mask_scores(scores, mask):
    return scores + mask.to(scores.dtype).log()


def causal_weights(scores):
    e = scores.exp() * causal_mask(scores.shape[-1], scores.device)
    return e / e.sum(-1, keepdim=True)
