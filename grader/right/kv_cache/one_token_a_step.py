"""A chunk is a step for each token; the cache is two tuples of tensors."""

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_head {n_head} does not divide {n_embd}")
        self.n_head = n_head
        self.hd = n_embd // n_head
        self.block = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def step(self, tok, ks, vs):
        q, k, v = self.qkv(tok).chunk(3, -1)
        ks = ks + (k.view(-1, self.n_head, self.hd),)
        vs = vs + (v.view(-1, self.n_head, self.hd),)
        K, V = torch.stack(ks, 2), torch.stack(vs, 2)
        s = (q.view(-1, self.n_head, 1, self.hd) * K).sum(-1) / self.hd**0.5
        y = (s.softmax(-1)[..., None] * V).sum(2)
        return self.proj(y.flatten(1)), ks, vs

    def forward(self, x, cache=None):
        ks, vs = cache if cache is not None else ((), ())
        if len(ks) + x.shape[1] > self.block:
            raise ValueError(f"{len(ks)} + {x.shape[1]} > {self.block}")
        out = []
        for tok in x.unbind(1):
            y, ks, vs = self.step(tok, ks, vs)
            out.append(y)
        return torch.stack(out, 1), (ks, vs)

