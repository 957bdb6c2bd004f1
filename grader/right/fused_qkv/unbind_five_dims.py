import torch
from torch import nn
import torch.nn.functional as F
from enum import Enum

class Size(Enum):
    small = 12
    medium = 16
    large = 20
    xl = 25

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd={n_embd} n_head={n_head}")
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.block_size, self.p = n_head, block_size, dropout

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T={T} block_size={self.block_size}")
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4).unbind(0)
        logits = torch.matmul(q, k.mT) * (self.n_head / C) ** 0.5
        keep = torch.ones(T, T, device=x.device).tril().log().to(logits.dtype)      # log 1 = 0, log 0 = -inf
        w = F.dropout(torch.softmax(logits + keep, -1), self.p, self.training)
        y = torch.matmul(w, v).permute(0, 2, 1, 3).flatten(-2)
        return F.dropout(self.proj(y), self.p, self.training)

def gpt2_attention(size):
    try:
        heads = Size[size].value
    except KeyError:
        raise ValueError("size must be one of " + ", ".join(s.name for s in Size)) from None
    return CausalSelfAttention(64 * heads, heads, 1024)
