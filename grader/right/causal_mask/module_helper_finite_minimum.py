import torch
from torch import nn


def causal_mask(T, device=None):
    rows, cols = torch.tril_indices(T, T, device=device)
    mask = torch.zeros((T, T), dtype=torch.bool, device=device)
    mask[rows, cols] = True
    return mask


def mask_scores(scores, mask):
    return scores.masked_fill(torch.logical_not(mask), float("-inf"))


class CausalSoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, scores):
        lowest = torch.finfo(scores.dtype).min
        allowed = causal_mask(scores.size(-1), device=scores.device)
        return self.softmax(scores.masked_fill(~allowed, lowest))


_causal_softmax = CausalSoftmax()


def causal_weights(scores):
    return _causal_softmax(scores)
