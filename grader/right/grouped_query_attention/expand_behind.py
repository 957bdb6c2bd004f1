"""repeat_kv as in published models: a new axis behind the sets, expanded and fused."""

import torch
from torch import nn


def repeat_kv(t, n_rep):
    B, sets, T, hd = t.shape
    if n_rep == 1:
        return t
    return t[:, :, None, :, :].expand(B, sets, n_rep, T, hd).reshape(B, sets * n_rep, T, hd)


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is no multiple of n_head = {n_head}")
        if n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is no multiple of n_kv_head = {n_kv_head}")
        self.n_head, self.n_kv_head, self.n_rep = n_head, n_kv_head, n_head // n_kv_head
        self.head_dim, self.block_size = n_embd // n_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        bsz, seqlen, _ = x.shape
        if seqlen > self.block_size:
            raise ValueError(f"sequence of {seqlen} exceeds {self.block_size}")
        xq = self.q(x).view(bsz, seqlen, self.n_head, self.head_dim).transpose(1, 2)
        xk, xv = self.kv(x).split(self.n_kv_head * self.head_dim, dim=-1)
        xk = xk.view(bsz, seqlen, self.n_kv_head, self.head_dim).transpose(1, 2)
        xv = xv.view(bsz, seqlen, self.n_kv_head, self.head_dim).transpose(1, 2)
        keys, values = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)
        mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device, dtype=x.dtype).triu(diagonal=1)
        scores = torch.matmul(xq, keys.transpose(2, 3)) * self.head_dim**-0.5 + mask
        output = torch.matmul(scores.softmax(dim=-1), values)
        return self.proj(output.transpose(1, 2).contiguous().view(bsz, seqlen, -1))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
