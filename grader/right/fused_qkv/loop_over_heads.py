"""A loop over heads, slices of the fused projection, concatenated at the end. Talks while it works."""

import sys
import warnings

import torch
from torch import nn

print("attention, one head at a time")


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"cannot cut {n_embd} into {n_head}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, n_embd * 3, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropout = nn.Dropout(p=dropout)

    def one_head(self, q, k, v):
        T = q.shape[1]
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        keep = torch.arange(T, device=q.device)
        scores = scores.masked_fill(keep[None, :] > keep[:, None], float("-inf"))
        return self.dropout(torch.softmax(scores, dim=2)) @ v

    def forward(self, x):
        warnings.warn("loops are slow", stacklevel=2)
        print("forward", tuple(x.shape), file=sys.stderr)
        _B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens, room for {self.block_size}")
        z, hd = self.qkv(x), C // self.n_head
        heads = []
        for h in range(self.n_head):
            q = z[:, :, h * hd : (h + 1) * hd]
            k = z[:, :, C + h * hd : C + (h + 1) * hd]
            v = z[:, :, 2 * C + h * hd : 2 * C + (h + 1) * hd]
            heads.append(self.one_head(q, k, v))
        return self.dropout(self.proj(torch.cat(heads, dim=-1)))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024).eval()
