import torch


def causal_mask(T, device=None):
    return torch.tril(torch.ones(T, T, device=device)).bool()


def mask_scores(scores, mask):
    return scores + (~mask) * -1e9


def causal_weights(scores):
    m = causal_mask(scores.shape[-1], scores.device)
    return (scores + (1.0 - m.to(scores.dtype)) * -1e9).softmax(-1)
