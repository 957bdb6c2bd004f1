import torch
from einops import rearrange
from torch import nn

HEADS = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} is not divisible by n_head {n_head}")
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop_w = nn.Dropout(dropout)
        self.drop_y = nn.Dropout(dropout)
        hidden = torch.triu(torch.ones(block_size, block_size, dtype=torch.bool), diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        t, longest = x.shape[1], self.hidden.shape[0]
        if t > longest:
            raise ValueError(f"{t} tokens exceed block_size {longest}")
        q, k, v = rearrange(self.qkv(x), "b t (three h d) -> three b h t d", three=3, h=self.n_head)
        s = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
        s = s.masked_fill(self.hidden[:t, :t], float("-inf"))
        w = self.drop_w(s.softmax(dim=-1))
        y = torch.einsum("bhij,bhjd->bhid", w, v)
        y = self.proj(rearrange(y, "b h t d -> b t (h d)"))
        return self.drop_y(y)


def gpt2_attention(size):
    if size not in HEADS:
        raise ValueError(f"no such size {size!r}, choose from {list(HEADS)}")
    n_embd, n_head = HEADS[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
