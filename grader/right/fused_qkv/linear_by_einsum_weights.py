import torch
from torch import nn, einsum

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        assert n_embd % n_head == 0, f"n_head={n_head} does not divide n_embd={n_embd}"
        self.h = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop_w = nn.Dropout(dropout)
        self.drop_o = nn.Dropout(dropout)

    def forward(self, x):
        assert x.shape[1] <= self.block_size, (x.shape[1], self.block_size)
        C = x.shape[2]
        W = self.qkv.weight.view(3, self.h, C // self.h, C)
        q, k, v = einsum("btc,shdc->sbhtd", x, W)
        a = einsum("bhid,bhjd->bhij", q, k) * (C // self.h) ** -0.5
        pos = torch.arange(x.shape[1], device=x.device)
        a = a.where(pos[:, None] >= pos, -torch.inf).softmax(-1)
        P = self.proj.weight.view(C, self.h, C // self.h)
        return self.drop_o(einsum("bhij,bhjd,chd->bic", self.drop_w(a), v, P))


def gpt2_attention(size):
    match size:
        case "small": n_embd, n_head = 768, 12
        case "medium": n_embd, n_head = 1024, 16
        case "large": n_embd, n_head = 1280, 20
        case "xl": n_embd, n_head = 1600, 25
        case _: raise ValueError(f"{size!r}: expected small, medium, large or xl")
    return CausalSelfAttention(n_embd, n_head, 1024)
