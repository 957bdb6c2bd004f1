import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import CausalBias, CausalVariant


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd}, n_head {n_head}: no whole head_dim")
        self.n_head, self.block_size, self.p, self.flash = n_head, block_size, dropout, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T {T}, block_size {self.block_size}")
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        p = self.p if self.training else 0.0
        bias = CausalBias(CausalVariant.LOWER_RIGHT, T, T)
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, bias, p)
        else:
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            scores = torch.where(bias._materialize(x.device), scores, -torch.inf)
            y = F.dropout(scores.softmax(-1), p) @ v
        return F.dropout(self.proj(y.transpose(1, 2).reshape(B, T, C)), p)


def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval()
    with torch.no_grad():
        module.flash = True
        fast = module(x)
        module.flash = False
        slow = module(x)
    module.flash = flash
    module.train(training)
    return float((fast - slow).abs().max())
