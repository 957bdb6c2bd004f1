import math
import torch
from torch import nn

class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd}, {n_head}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k, v = (each.view(B, T, self.n_head, -1) for each in (k, v))
        if cache is not None:
            k, v = (torch.cat([cache[name], new], dim=1) for name, new in (("k", k), ("v", v)))
        cache, S = {"k": k, "v": v}, k.size(1)
        if S > self.block_size:
            raise ValueError(f"{S}, {self.block_size}")
        q, k, v = (each.reshape(B, -1, self.n_head, C // self.n_head).transpose(1, 2) for each in (q, k, v))
        later = torch.ones(T, S, dtype=torch.bool, device=x.device).triu(S - T + 1)
        weights = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(later, -math.inf).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C)), cache
