import torch
import torch.nn as nn

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        hd, rest = divmod(n_embd, n_head)
        if rest:
            raise ValueError(f"n_embd={n_embd} is not a multiple of n_head={n_head}")
        self.n_head, self.hd, self.block_size = n_head, hd, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.adrop, self.odrop = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens > block of {self.block_size}")
        y = self.qkv(x).mT          # B, 3C, T
        y = y.reshape(B, 3, self.n_head, self.hd, T)
        q, k, v = y.select(1, 0), y.select(1, 1), y.select(1, 2)              # B, nh, hd, T
        s = (k.mT @ q) * self.hd ** -0.5                                      # key, query
        i = torch.arange(T, device=x.device)
        s = s.masked_fill(i.view(-1, 1) > i, float("-inf"))
        p = (s - s.logsumexp(-2, keepdim=True)).exp()
        o = v @ self.adrop(p)                                                 # B, nh, hd, T
        return self.odrop(self.proj(o.reshape(B, C, T).mT))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose from {list(table)}")
    C, n = table[size]
    return CausalSelfAttention(C, n, 1024)
