import torch
import torch.nn.functional as F


def causal_mask(T, device=None):
    picture = []
    for query in range(T):
        row = []
        for key in range(T):
            row.append(key <= query)
        picture.append(row)
    return torch.tensor(picture, dtype=torch.bool, device=device)


def mask_scores(scores, mask):
    out = scores.clone()
    out.masked_fill_(~mask, float("-inf"))
    return out


def causal_weights(scores):
    T = scores.shape[-1]
    rows = []
    for t in range(T):
        visible = scores[..., t, : t + 1]
        rows.append(F.pad(F.softmax(visible, dim=-1), (0, T - t - 1)))
    return torch.stack(rows, dim=-2)
