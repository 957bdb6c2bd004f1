import torch
import torch.nn.functional as F
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_head} heads do not divide {n_embd} channels")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache["k"], k], -2), torch.cat([cache["v"], v], -2)
        T_q, T_k = q.size(-2), k.size(-2)
        if T_k > self.block_size:
            raise ValueError(f"{T_k} tokens, at most {self.block_size}")
        mask = torch.ones(T_q, T_k, dtype=torch.bool, device=x.device).tril(T_k - T_q)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(y.transpose(1, 2).flatten(2)), {"k": k, "v": v}
