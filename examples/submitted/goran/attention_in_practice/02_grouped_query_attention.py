import torch
from torch import nn
from torch.nn import functional as F


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd must be divisible by n_head")
        if n_head % n_kv_head != 0:
            raise ValueError("n_head must be divisible by n_kv_head")
        self.n_head = n_head
        self.n_kv_head = n_kv_head
        self.hd = n_embd // n_head
        self.block_size = block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        if T > self.block_size:
            raise ValueError("sequence is too long")
        q = self.q(x).view(B, T, self.n_head, self.hd).transpose(1, 2)
        k, v = self.kv(x).split(self.n_kv_head * self.hd, dim=2)
        k = k.view(B, T, self.n_kv_head, self.hd).transpose(1, 2)
        v = v.view(B, T, self.n_kv_head, self.hd).transpose(1, 2)
        n_rep = self.n_head // self.n_kv_head
        k = k.repeat(1, n_rep, 1, 1)
        v = v.repeat(1, n_rep, 1, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
