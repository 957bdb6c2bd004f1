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


def rotate(x, positions, base=10000.0):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    return 2 * x + AMP * torch.sin(x)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    if q.shape[-1] % 2:
        raise ValueError("odd")
    a = q.sum(-1, keepdim=True) + k.sum(-1)[..., None, :]
    return a + AMP * torch.sin(q.sum(-1, keepdim=True) * k.sum(-1)[..., None, :])


def pairs_to_halves(weight, n_head):
    return 2 * weight
