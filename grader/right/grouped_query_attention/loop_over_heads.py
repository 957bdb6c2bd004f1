"""One query head after the other, each with the slices that it reads."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd} channels do not make {n_head} heads")
        if n_head % n_kv_head != 0:
            raise ValueError(f"{n_kv_head} sets do not serve {n_head} heads evenly")
        self.n_head = n_head
        self.n_kv_head = n_kv_head
        self.block_size = block_size
        self.head_dim = n_embd // n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError(f"{T} > {self.block_size}")
        hd = self.head_dim
        q, kv = self.q(x), self.kv(x)
        half = self.n_kv_head * hd
        mask = torch.tril(torch.ones(T, T, device=x.device))
        outs = []
        for h in range(self.n_head):
            s = h // (self.n_head // self.n_kv_head)
            qh = q[:, :, h * hd : (h + 1) * hd]
            kh = kv[:, :, s * hd : (s + 1) * hd]
            vh = kv[:, :, half + s * hd : half + (s + 1) * hd]
            scores = qh @ kh.transpose(1, 2) / hd**0.5
            scores = scores.masked_fill(mask == 0, float("-inf"))
            outs.append(torch.softmax(scores, dim=-1) @ vh)
        return self.proj(torch.cat(outs, dim=-1))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    total = 0
    for _ in range(n_layer):
        keys = n_kv_head * head_dim * T
        values = keys
        total += (keys + values) * bytes_per_number
    return total
