"""SDPA on (B · nh, T, hd), bmm and baddbmm by hand."""

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd} % {n_head} != 0")
        self.nh, self.hd, self.block_size = n_head, n_embd // n_head, block_size
        self.dropout, self.flash = dropout, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def fold(self, t):
        B, T, _ = t.shape
        return t.reshape(B, T, self.nh, self.hd).transpose(1, 2).reshape(B * self.nh, T, self.hd)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        q, k, v = (self.fold(t) for t in torch.tensor_split(self.qkv(x), 3, dim=-1))
        p = self.dropout if self.training else 0.0
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            mask = torch.zeros(T, T, dtype=x.dtype, device=x.device)
            mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), -1e9)
            scores = torch.baddbmm(mask.expand(B * self.nh, T, T), q, k.transpose(1, 2), alpha=self.hd**-0.5)
            y = torch.bmm(torch.dropout(scores.softmax(-1), p, True), v)
        y = y.view(B, self.nh, T, self.hd).transpose(1, 2).reshape(B, T, C)
        return torch.dropout(self.proj(y), self.dropout, self.training)


def max_path_difference(module, x):
    was_flash, was_training = module.flash, module.training
    try:
        module.train(False)
        with torch.no_grad():
            results = {}
            for module.flash in (True, False):
                results[module.flash] = module(x)
        return (results[True] - results[False]).abs().amax().item()
    finally:
        module.flash = was_flash
        module.train(was_training)
