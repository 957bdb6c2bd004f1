import torch


def causal_mask(T, device=None):
    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
    for query in range(T):
        for key in range(T):
            if key <= query:
                mask[query, key] = True
    return mask


def mask_scores(scores, mask):
    rows = []
    mask = mask.expand(scores.shape)
    for query in range(scores.shape[-2]):
        rows.append(scores[..., query, :].masked_fill(~mask[..., query, :], float("-inf")))
    return torch.stack(rows, dim=-2)


def causal_weights(scores):
    T = scores.shape[-1]
    rows = []
    for query in range(T):
        seen = torch.softmax(scores[..., query, : query + 1], dim=-1)
        nothing = scores.new_zeros(*seen.shape[:-1], T - query - 1)
        rows.append(torch.cat([seen, nothing], dim=-1))
    return torch.stack(rows, dim=-2)
