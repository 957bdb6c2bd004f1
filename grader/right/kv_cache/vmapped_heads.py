"""One head of one sequence, mapped over both."""

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"cannot split {n_embd} into {n_head}")
        self.n_head = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).unflatten(2, (3, self.n_head, -1)).unbind(2)
        if cache is not None:
            k = torch.cat([cache[:, :, 0], k], 1)
            v = torch.cat([cache[:, :, 1], v], 1)
        S = k.shape[1]
        if S > self.block_size:
            raise ValueError(f"{S} > block_size = {self.block_size}")
        hidden = torch.arange(S, device=x.device) > torch.arange(S - T, S, device=x.device)[:, None]

        def one(q, k, v):  # (T, hd), (S, hd)
            s = q @ k.T * q.shape[-1] ** -0.5
            return s.masked_fill(hidden, -torch.inf).softmax(-1) @ v

        y = torch.vmap(torch.vmap(one, in_dims=1, out_dims=1))(q, k, v)
        return self.proj(y.flatten(2)), torch.stack([k, v], 2)

