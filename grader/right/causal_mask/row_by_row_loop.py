import torch

def causal_mask(T, device=None):
    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
    for row in range(T):
        mask[row, : row + 1] = True
    return mask

def mask_scores(scores, mask):
    full_mask = mask.expand_as(scores)
    out = scores.clone()
    out[~full_mask] = float("-inf")
    return out

def causal_weights(scores):
    T = scores.shape[-1]
    rows = []
    for t in range(T):
        visible = scores[..., t, : t + 1]
        w = torch.softmax(visible, dim=-1)
        rest = torch.zeros_like(scores[..., t, t + 1 :])
        rows.append(torch.cat([w, rest], dim=-1))
    return torch.stack(rows, dim=-2)
