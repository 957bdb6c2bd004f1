"""The softmax by hand in two steps, keys and values stacked instead of repeated."""

import torch
from torch import nn


def share_out(scores, visible):
    top = scores.masked_fill(~visible, -torch.inf).amax(-1, keepdim=True)
    e = torch.exp((scores - top).clamp(max=0.0)) * visible
    return e / e.sum(-1, keepdim=True)


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        self.head_dim, rest = divmod(n_embd, n_head)
        self.group, left = divmod(n_head, n_kv_head)
        if rest:
            raise ValueError(f"{n_embd} / {n_head} leaves {rest}")
        if left:
            raise ValueError(f"{n_head} / {n_kv_head} leaves {left}")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens do not fit {self.block_size}")
        k, v = torch.split(self.kv(x), self.n_kv_head * self.head_dim, dim=2)
        k, v = (t.view(B, T, self.n_kv_head, self.head_dim) for t in (k, v))
        k, v = (torch.stack([t] * self.group, dim=3).view(B, T, self.n_head, self.head_dim) for t in (k, v))
        q = self.q(x).view(B, T, self.n_head, self.head_dim)
        q, k, v = (t.movedim(2, 1) for t in (q, k, v))
        place = torch.arange(T, device=x.device)
        y = share_out(q @ k.mT / self.head_dim**0.5, place[:, None] >= place) @ v
        return self.proj(y.movedim(1, 2).flatten(2))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    """n_head does not matter."""
    per_token = 2 * n_kv_head * head_dim
    return n_layer * T * per_token * bytes_per_number
