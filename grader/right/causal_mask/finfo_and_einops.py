import torch
from einops import rearrange

def causal_mask(T, device=None):
    query = rearrange(torch.arange(T, device=device), "t -> t 1")
    key = rearrange(torch.arange(T, device=device), "t -> 1 t")
    return key <= query

def mask_scores(scores, mask):
    return scores.masked_fill(mask == False, float("-inf"))  # noqa: E712

def causal_weights(scores):
    lowest = torch.finfo(scores.dtype).min
    ok = causal_mask(scores.shape[-1], device=scores.device)
    return scores.where(ok, lowest).softmax(dim=-1)
