"""Compares a deep copy, so that there is nothing to put back; float additive mask as a non-persistent buffer."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_head must divide n_embd")
        self.n_head, self.flash = n_head, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop_weights, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("hidden", torch.full((block_size, block_size), -torch.inf).triu(1), persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > len(self.hidden):
            raise ValueError(f"{T} tokens, {len(self.hidden)} at most")
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).swapaxes(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.flash:
            p = self.drop_weights.p * self.training
            y = F.scaled_dot_product_attention(q, k, v, None, p, True)
        else:
            w = torch.softmax(q @ k.transpose(-1, -2) / (C // self.n_head) ** 0.5 + self.hidden[:T, :T], dim=-1)
            y = self.drop_weights(w) @ v
        return self.drop_output(self.proj(y.swapaxes(1, 2).reshape(B, T, C)))


def max_path_difference(module, x):
    twin = copy.deepcopy(module).eval().requires_grad_(False)
    twin.flash = True
    fast = twin(x.detach())
    twin.flash = False
    return float(torch.max(torch.abs(fast - twin(x.detach()))))
