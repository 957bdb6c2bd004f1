"""Softmax in float32 by hand, a mask cached when first needed, forward called directly."""

import math

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as sdpa


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} must be divisible by n_head {n_head}")
        self.cfg, self.flash = (n_embd, n_head, block_size), flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self.mask_cache = None

    def get_mask(self, T, device):
        if self.mask_cache is None or self.mask_cache.shape[0] < T or self.mask_cache.device != device:
            self.mask_cache = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self.mask_cache[:T, :T]

    def forward(self, x):
        C, nh, block = self.cfg
        B, T, _ = x.shape
        if T > block:
            raise ValueError(f"got {T} tokens, at most {block}")
        q, k, v = [t.reshape(B, T, nh, -1).permute(0, 2, 1, 3) for t in torch.split(self.qkv(x), C, dim=-1)]
        if self.flash:
            y = sdpa(q, k, v, is_causal=True, dropout_p=self.drop1.p if self.training else 0.0)
        else:
            scores = torch.matmul(q, k.transpose(2, 3)).div(math.sqrt(C // nh))
            scores = scores.masked_fill(self.get_mask(T, x.device), float("-inf"))
            y = torch.matmul(self.drop1(torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)), v)
        return self.drop2(self.proj(y.permute(0, 2, 1, 3).reshape(B, T, -1)))


def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval()
    with torch.no_grad():
        module.flash = True
        y_flash = module.forward(x)
        module.flash = False
        y_manual = module.forward(x)
    module.flash = flash
    if training:
        module.train()
    return max((y_flash - y_manual).abs().flatten().tolist())
