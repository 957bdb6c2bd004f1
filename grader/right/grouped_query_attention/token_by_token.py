import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError("not divisible")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError("too long")
        keys, values, out = [], [], []
        for t in range(T):
            k, v = self.kv(x[:, t]).view(B, 2, self.n_kv_head, 1, -1).unbind(1)
            keys.append(k)
            values.append(v)
            q = self.q(x[:, t]).view(B, self.n_kv_head, self.n_head // self.n_kv_head, -1)
            K, V = torch.cat(keys, 2), torch.cat(values, 2)
            w = (q @ K.mT * q.size(-1) ** -0.5).softmax(-1)
            out.append((w @ V).reshape(B, C))
        return self.proj(torch.stack(out, 1))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return sum(2 * n_kv_head * head_dim * bytes_per_number for _ in range(T)) * n_layer
