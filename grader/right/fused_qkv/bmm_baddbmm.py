"""Heads folded into the batch; baddbmm adds the mask and scales in one go; bmm."""

import torch
from torch import nn


def fold(t, nh):
    B, T, C = t.shape
    return t.reshape(B, T, nh, C // nh).swapaxes(1, 2).reshape(B * nh, T, C // nh)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd} % {n_head} != 0")
        self.nh, self.hd, self.block_size, self.dropout = n_head, n_embd // n_head, block_size, dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        q, k, v = (fold(t, self.nh) for t in torch.tensor_split(self.qkv(x), 3, dim=-1))
        mask = torch.zeros(T, T, dtype=x.dtype, device=x.device)
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), -1e9)
        scores = torch.baddbmm(mask.expand(B * self.nh, T, T), q, k.transpose(1, 2), alpha=self.hd**-0.5)
        weights = torch.dropout(scores.softmax(-1), self.dropout, self.training)
        y = torch.bmm(weights, v).view(B, self.nh, T, self.hd).transpose(1, 2).reshape(B, T, C)
        return torch.dropout(self.proj(y), self.dropout, self.training)


class GPT2Attention(CausalSelfAttention):
    def extra_repr(self):
        return f"of {self.number_of_channels()} channels"

    def number_of_channels(self):
        return self.qkv.in_features


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return GPT2Attention(n_embd, n_head, 1024)
