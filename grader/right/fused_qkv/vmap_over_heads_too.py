import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    """Each head is a plain 2-d function; vmap runs it over heads and sequences."""

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is no multiple of n_head = {n_head}")
        self.n_head = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.att_drop = nn.Dropout(dropout)
        self.out_drop = nn.Dropout(dropout)

    @staticmethod
    def _logits(q, k):
        n, hd = q.shape
        raw = q @ k.T / hd**0.5
        later = torch.arange(n, device=q.device) > torch.arange(n, device=q.device)[:, None]
        return raw.masked_fill(later, -torch.inf)

    def forward(self, x):
        b, n, c = x.shape
        if n > self.block_size:
            raise ValueError(f"n = {n} > block_size = {self.block_size}")
        fused = self.qkv(x).reshape(b, n, 3, self.n_head, c // self.n_head)
        q, k, v = fused.permute(2, 0, 3, 1, 4)
        logits = torch.vmap(torch.vmap(self._logits))(q, k)
        weights = self.att_drop(torch.softmax(logits, dim=-1))
        y = torch.vmap(torch.vmap(torch.mm))(weights, v)
        y = torch.cat(list(y.unbind(1)), dim=-1)
        return self.out_drop(self.proj(y))


def gpt2_attention(size):
    heads = dict(small=12, medium=16, large=20, xl=25)
    if size not in heads:
        raise ValueError("gpt2_attention knows small, medium, large and xl; not " + repr(size))
    return CausalSelfAttention(64 * heads[size], heads[size], block_size=1024, dropout=0.0)
