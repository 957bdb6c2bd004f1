"""A mask is made for each length and each device when it is first asked for, and kept; nothing else is."""

import torch
import torch.nn as nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd = {n_embd} and n_head = {n_head}")
        self.n_head, self.block_size, self.rate = n_head, block_size, dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.masks, self.last = {}, None

    def ahead(self, T, device):
        if (T, device) not in self.masks:
            self.masks[T, device] = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self.masks[T, device]

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens in a block of {self.block_size}")
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(self.ahead(T, x.device), -torch.inf).softmax(-1)
        self.last = weights.detach()  # to be drawn; no call reads it
        y = nn.functional.dropout(weights, self.rate, self.training) @ v
        return nn.functional.dropout(self.proj(y.transpose(1, 2).flatten(2)), self.rate, self.training)


SIZES = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}


def gpt2_attention(size):
    if size not in SIZES:
        raise ValueError(f"{size!r} is none of {', '.join(SIZES)}")
    return CausalSelfAttention(*SIZES[size], 1024)
