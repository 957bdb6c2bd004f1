"""SDPA with a slice of the boolean buffer; einops; the difference by numpy."""

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd={n_embd}, n_head={n_head}")
        self.n_head, self.block_size, self.p, self.flash = n_head, block_size, dropout, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("mask", torch.ones(block_size, block_size, dtype=torch.bool).tril())

    def forward(self, x):
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError(f"T={T} is longer than block_size={self.block_size}")
        q, k, v = rearrange(self.qkv(x), "b t (three h d) -> three b h t d", three=3, h=self.n_head)
        mask = self.mask[:T, :T]
        p = self.p if self.training else 0.0
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        else:
            scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
            weights = F.dropout(scores.masked_fill(~mask, float("-inf")).softmax(-1), p)
            y = weights @ v
        return F.dropout(self.proj(rearrange(y, "b h t d -> b t (h d)")), self.p, self.training)


def max_path_difference(module, x):
    before = module.flash, module.training
    outputs = []
    with torch.no_grad():
        module.eval()
        for flash in (False, True):
            module.flash = flash
            outputs.append(module(x).cpu().numpy())
    module.flash = before[0]
    module.train(before[1])
    return float(np.abs(outputs[0] - outputs[1]).max())
