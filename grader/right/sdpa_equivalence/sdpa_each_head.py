"""A loop over heads on both paths, slices of the fused projection, prints and warnings."""

import sys
import warnings

import torch
from torch import nn

print("both paths, one head at a time")


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"cannot cut {n_embd} into {n_head}")
        self.n_head, self.block_size, self.flash = n_head, block_size, flash
        self.qkv = nn.Linear(n_embd, n_embd * 3, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropout = nn.Dropout(p=dropout)

    def one_head(self, q, k, v):
        if self.flash:
            p = self.dropout.p if self.dropout.training else 0.0
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        T = q.shape[1]
        position = torch.arange(T, device=q.device)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(position[None, :] > position[:, None], float("-inf"))
        return self.dropout(torch.softmax(scores, dim=2)) @ v

    def forward(self, x):
        warnings.warn("loops are slow", stacklevel=2)
        print("forward", tuple(x.shape), file=sys.stderr)
        _, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} tokens, room for {self.block_size}")
        z, hd = self.qkv(x), C // self.n_head
        heads = []
        for h in range(self.n_head):
            part = slice(h * hd, (h + 1) * hd)
            heads.append(self.one_head(z[..., :C][..., part], z[..., C : 2 * C][..., part], z[..., 2 * C :][..., part]))
        return self.dropout(self.proj(torch.cat(heads, dim=-1)))


class path:
    """with path(module, flash): ..."""

    def __init__(self, module, flash):
        self.module, self.flash = module, flash

    def __enter__(self):
        self.before = self.module.flash, self.module.training
        self.module.flash = self.flash
        return self.module.eval()

    def __exit__(self, *exc):
        self.module.flash = self.before[0]
        self.module.train(self.before[1])


def max_path_difference(module, x):
    with torch.no_grad():
        with path(module, True):
            fast = module(x)
        with path(module, False):
            slow = module(x)
        print("difference", fast.sub(slow).abs().max())
        return fast.sub(slow).abs().max().item()
