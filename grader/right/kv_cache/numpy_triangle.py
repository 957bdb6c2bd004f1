"""Exponentials by hand, hidden by NumPy's triangle."""

import numpy as np
import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd is %d, n_head is %d" % (n_embd, n_head))
        self.n_head = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        hd = C // self.n_head
        z = self.qkv(x)
        q = z[:, :, :C].reshape(B, T, self.n_head, hd)
        kv = z[:, :, C:].reshape(B, T, 2, self.n_head, hd)
        if cache is not None:
            kv = torch.cat([cache, kv], dim=1)
        S = kv.shape[1]
        if S > self.block_size:
            raise ValueError(f"{S} tokens in a block of {self.block_size}")
        k, v = kv[:, :, 0], kv[:, :, 1]
        s = (q[:, :, None] * k[:, None]).sum(-1) / np.sqrt(hd)  # (B, T, S, nh)
        s = s - s.max(dim=2, keepdim=True).values
        e = torch.exp(s)
        ok = np.tril(np.ones((T, S), dtype=bool), k=S - T)
        e = e * torch.from_numpy(ok).to(x.device)[None, :, :, None]
        w = e / e.sum(2, keepdim=True)
        y = (w[..., None] * v[:, None]).sum(2)
        return self.proj(y.reshape(B, T, C)), kv

