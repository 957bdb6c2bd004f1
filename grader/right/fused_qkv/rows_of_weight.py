import math
import torch
from torch import nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_head} heads cannot share {n_embd} channels")
        self.C = n_embd
        self.nh = n_head
        self.L = block_size
        self.rate = dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        nn.init.normal_(self.qkv.weight, std=0.02)
        nn.init.normal_(self.proj.weight, std=0.02)
        self._cached_mask = None

    def causal(self, T, device):
        m = self._cached_mask
        if m is None or m.size(0) < T or m.device != device:
            m = torch.ones(T, T, device=device).triu(1) > 0
            self._cached_mask = m
        return m[:T, :T]

    def forward(self, x):
        B, T, C = x.shape
        if T > self.L:
            raise ValueError(f"T={T} > block_size={self.L}")
        W = self.qkv.weight
        Wq, Wk, Wv = W[:C], W[C : 2 * C], W[2 * C :]
        Wq = Wq.view(self.nh, C // self.nh, C)
        Wk = Wk.view(self.nh, C // self.nh, C)
        Wv = Wv.view(self.nh, C // self.nh, C)
        q = torch.einsum("btc,hdc->bhtd", x, Wq)
        k = torch.einsum("btc,hdc->bhtd", x, Wk)
        v = torch.einsum("btc,hdc->bhtd", x, Wv)
        s = torch.einsum("bhqd,bhkd->bhqk", q, k)
        s = s / math.sqrt(C // self.nh)
        s = s.masked_fill(self.causal(T, x.device), torch.finfo(s.dtype).min)
        a = torch.softmax(s, dim=3, dtype=s.dtype)
        a = F.dropout(a, p=self.rate, training=self.training)
        z = torch.einsum("bhqk,bhkd->bqhd", a, v).reshape(B, T, C)
        z = F.linear(z, self.proj.weight)
        z = F.dropout(z, p=self.rate, training=self.training)
        return z


def gpt2_attention(size):
    if size == "small":
        return CausalSelfAttention(768, 12, 1024)
    elif size == "medium":
        return CausalSelfAttention(1024, 16, 1024)
    elif size == "large":
        return CausalSelfAttention(1280, 20, 1024)
    elif size == "xl":
        return CausalSelfAttention(1600, 25, 1024)
    raise ValueError("size should be small, medium, large or xl, not %r" % (size,))
