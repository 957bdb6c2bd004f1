import torch

def causal_mask(T, device=None):
    # a row is "on" once its diagonal has been passed, looking from the right
    eye = torch.eye(T, dtype=torch.long, device=device)
    return eye.flip(1).cumsum(1).flip(1) > 0

def mask_scores(scores, mask):
    hide = torch.logical_not(mask)
    return torch.masked_fill(scores, hide, -torch.inf)

def causal_weights(scores):
    T = scores.size(-1)
    return torch.special.softmax(mask_scores(scores, causal_mask(T, scores.device)), -1)
