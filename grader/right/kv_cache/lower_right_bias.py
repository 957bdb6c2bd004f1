"""The fused function with PyTorch's own lower right bias."""

import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd} not divisible by {n_head}")
        self.n_head = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        bsz, n, dim = x.shape
        q, k, v = self.qkv(x).view(bsz, n, 3, self.n_head, dim // self.n_head).permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            k, v = (torch.cat(p, dim=2) for p in zip(cache, (k, v)))
        m = k.shape[2]
        if m > self.block_size:
            raise ValueError(f"{m} > {self.block_size}")
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(n, m))
        out = out.transpose(1, 2).contiguous().view(bsz, n, dim)
        return self.proj(out), (k, v)
