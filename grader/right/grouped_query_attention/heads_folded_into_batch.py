"""Sets folded into the batch, the group into the tokens; float32 softmax at least."""

import math

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head != 0 or n_head % n_kv_head != 0:
            raise ValueError(f"n_embd {n_embd}, n_head {n_head}, n_kv_head {n_kv_head}")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("causal", torch.ones(1, block_size, block_size, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        nkv, g, hd = self.n_kv_head, self.n_head // self.n_kv_head, C // self.n_head
        q = self.q(x).view(B, T, nkv, g, hd).permute(0, 2, 3, 1, 4).reshape(B * nkv, g, T, hd)
        k, v = self.kv(x).chunk(2, dim=-1)
        k = k.view(B, T, nkv, hd).transpose(1, 2).reshape(B * nkv, 1, T, hd)
        v = v.view(B, T, nkv, hd).transpose(1, 2).reshape(B * nkv, 1, T, hd)
        scores = torch.matmul(q / math.sqrt(hd), k.transpose(-1, -2))
        scores = scores + (~self.causal[:, :T, :T]).to(scores.dtype) * -1e9
        precise = torch.promote_types(scores.dtype, torch.float32)
        y = torch.matmul(torch.softmax(scores, -1, dtype=precise).to(v.dtype), v)
        return self.proj(y.view(B, nkv, g, T, hd).permute(0, 3, 1, 2, 4).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
