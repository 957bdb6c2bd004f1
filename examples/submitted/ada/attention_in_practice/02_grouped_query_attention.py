import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd} channels, {n_head} heads, {n_kv_head} heads of keys and values")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.head_dim = n_embd // n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens, at most {self.block_size}")
        group = self.n_head // self.n_kv_head
        q = self.q(x).view(B, T, self.n_kv_head, group, self.head_dim)
        k, v = self.kv(x).view(B, T, 2, self.n_kv_head, self.head_dim).unbind(2)
        scores = torch.einsum("bqngd,bknd->bngqk", q, k) * self.head_dim**-0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        y = torch.einsum("bngqk,bknd->bqngd", weights, v)
        return self.proj(y.reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return n_layer * 2 * n_kv_head * head_dim * T * bytes_per_number
