import torch

def causal_mask(T, device=None):
    idx = torch.tril_indices(T, T, device=device)
    m = torch.zeros((T, T), device=device).bool()
    m[idx[0], idx[1]] = True
    return m

def mask_scores(scores, mask):
    minus = torch.tensor(-torch.inf, dtype=scores.dtype, device=scores.device)
    return torch.where(mask, scores, minus)

def causal_weights(scores):
    T = scores.shape[-1]
    keep = causal_mask(T, scores.device)
    # subtract the largest VISIBLE score, so exp is safe; what is hidden goes to 0 before the sum
    top = mask_scores(scores, keep).amax(-1, keepdim=True)
    e = torch.exp(torch.minimum(scores - top, torch.zeros_like(scores))) * keep
    return e / e.sum(-1, keepdim=True)
