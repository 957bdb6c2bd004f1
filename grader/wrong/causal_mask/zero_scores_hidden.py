"""The mask is read off the scores: a visible score of exactly 0 is hidden, too."""

import torch


def causal_mask(T, device=None):
    return torch.tril(torch.ones((T, T), device=device)) == 1


def mask_scores(scores, mask):
    return scores.masked_fill(mask == False, float("-inf"))


def causal_weights(scores):
    wei = torch.tril(scores)
    wei = wei.masked_fill(wei == 0, float("-inf"))
    return torch.softmax(wei, dim=-1)
