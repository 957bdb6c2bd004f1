import torch
from torch import nn
from functools import partial
from einops import rearrange

def single(q, k, v, *, drop, later):
    s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return s.masked_fill(later, torch.finfo(s.dtype).min).softmax(-1), v

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd=} {n_head=}")
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, n_embd * 3, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drops = nn.ModuleList([nn.Dropout(dropout), nn.Dropout(dropout)])
        self.register_buffer("later", torch.triu(torch.ones(block_size, block_size, dtype=torch.bool), 1), persistent=False)

    def forward(self, x):
        T = x.size(-2)
        if T > self.later.size(0):
            raise ValueError(f"{T} > block_size {self.later.size(0)}")
        q, k, v = rearrange(self.qkv(x), "b t (three h d) -> three h b t d", three=3, h=self.n_head)
        fn = partial(single, drop=None, later=self.later[:T, :T])
        w, v = torch.vmap(fn)(q, k, v)
        y = self.drops[0](w) @ v
        return self.drops[1](self.proj(rearrange(y, "h b t d -> b t (h d)")))

GPT2 = dict(zip(("small", "medium", "large", "xl"), ((768, 12), (1024, 16), (1280, 20), (1600, 25))))

def gpt2_attention(size: str) -> CausalSelfAttention:
    if size not in GPT2:
        raise ValueError(f"{size} is not in {tuple(GPT2)}")
    return CausalSelfAttention(*GPT2[size], block_size=1024)
