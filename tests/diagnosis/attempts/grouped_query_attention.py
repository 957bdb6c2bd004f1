import torch
from torch import nn
from torch.nn import functional as F

class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd}, {n_head}, {n_kv_head}")
        self.n_head, self.block_size = n_head, block_size
        self.q, self.kv, self.proj = (nn.Linear(n_embd, n * n_embd, bias=False) for n in (1, 2, 1))

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError(f"{x.shape[1]}, {self.block_size}")
        parts = (self.q(x), *self.kv(x).chunk(2, -1))
        q, k, v = (part.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))

def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
