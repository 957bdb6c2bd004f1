"""q, k, v by einsum from the weight, in whatever layout that gives; the scale is handed to SDPA."""

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd=} {n_head=}")
        self.heads, self.block, self.p, self.flash = n_head, block_size, dropout, bool(flash)
        self.scale = (n_embd // n_head) ** -0.5
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        _, T, C = x.shape
        if T > self.block:
            raise ValueError(f"{T} > {self.block}")
        w = self.qkv.weight.view(3, self.heads, C // self.heads, C)
        q = torch.einsum("btc,hdc->bhtd", x, w[0])
        k = torch.einsum("btc,hdc->bhdt", x, w[1]).mT
        v = torch.einsum("btc,hdc->bhtd", x, w[2])
        p = self.p if self.training else 0.0
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True, scale=self.scale)
        else:
            scores = torch.einsum("bhid,bhjd->bhij", q * self.scale, k)
            future = torch.ones(T, T, device=x.device).triu(1) > 0
            y = torch.einsum("bhij,bhjd->bhid", F.dropout(scores.where(~future, -torch.inf).softmax(-1), p), v)
        out = torch.einsum("bhid,ohd->bio", y, self.proj.weight.view(C, self.heads, -1))
        return F.dropout(out, self.p, self.training)


def max_path_difference(module, x):
    state = module.flash, module.training
    with torch.no_grad():
        module.eval()
        module.flash = not module.flash
        one = module(x)
        module.flash = not module.flash
        other = module(x)
    module.flash, _ = state
    module.train(state[1])
    return torch.dist(one, other, p=float("inf")).item()
