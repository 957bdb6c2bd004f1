"""One set after the other, with its queries side by side in one longer sequence."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"n_embd={n_embd} n_head={n_head} n_kv_head={n_kv_head}")
        self.group, self.sets, self.hd, self.most = n_head // n_kv_head, n_kv_head, n_embd // n_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.most:
            raise ValueError(f"{T} tokens, {self.most} at most")
        k, v = torch.tensor_split(self.kv(x), 2, dim=-1)
        later = torch.ones(T, T, device=x.device).triu(1).bool().repeat(self.group, 1)  # (group · T, T)
        parts = zip(*(t.split(w, -1) for t, w in ((self.q(x), self.group * self.hd), (k, self.hd), (v, self.hd))))
        told = []
        for qs, ks, vs in parts:
            qs = qs.view(B, T, self.group, self.hd).transpose(1, 2).reshape(B, self.group * T, self.hd)
            scores = torch.bmm(qs, ks.transpose(1, 2)).div(self.hd**0.5).masked_fill(later, -1e30)
            ys = torch.bmm(scores.softmax(-1), vs).view(B, self.group, T, self.hd)
            told.append(ys.transpose(1, 2).reshape(B, T, self.group * self.hd))
        return self.proj(torch.cat(told, -1))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
