import torch


def causal_mask(T, device=None):
    return torch.eye(T, device=device).cumsum(dim=0) > 0


def mask_scores(scores, mask):
    # log 1 = 0, log 0 = -inf
    return scores + mask.to(scores.dtype).log()


def causal_weights(scores):
    masked = mask_scores(scores, causal_mask(scores.size(-1), scores.device))
    return torch.exp(masked - torch.logsumexp(masked, dim=-1, keepdim=True))
