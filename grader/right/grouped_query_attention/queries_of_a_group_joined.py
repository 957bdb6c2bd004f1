import torch
from torch import nn
import torch.nn.functional as F


class GroupedQueryAttention(nn.Module):
    """The queries of one group stand below one another: one matmul for each key/value head."""

    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_embd")
        if n_head % n_kv_head:
            raise ValueError("n_kv_head")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.head_dim = n_embd // n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError("T")
        r = self.n_head // self.n_kv_head
        q = self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)
        q = q.reshape(B, self.n_kv_head, r * T, self.head_dim)
        wk, wv = self.kv.weight.chunk(2)
        k = F.linear(x, wk).view(B, T, self.n_kv_head, -1).transpose(1, 2)
        v = F.linear(x, wv).view(B, T, self.n_kv_head, -1).transpose(1, 2)
        s = q @ k.transpose(-1, -2) / self.head_dim**0.5
        causal = torch.tril(torch.ones(T, T, device=x.device)).bool().repeat(r, 1)
        s = s.masked_fill(causal.logical_not(), float("-inf"))
        y = (F.softmax(s, -1) @ v).view(B, self.n_head, T, self.head_dim)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    size = bytes_per_number
    for n in (2, n_layer, n_kv_head, head_dim, T):
        size *= n
    return size
