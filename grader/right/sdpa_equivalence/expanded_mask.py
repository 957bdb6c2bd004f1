"""The mask expanded to (B, nh, T, T) for SDPA; by hand a softmax of exp and sum."""

import torch
import torch.nn.functional as F
from torch import nn


def softmax(scores):
    e = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("indivisible")
        self.n_head, self.d_head, self.max_len, self.flash = n_head, n_embd // n_head, block_size, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropouts = nn.ModuleDict({"attention": nn.Dropout(dropout), "residual": nn.Dropout(dropout)})
        self.register_buffer("causal", torch.ones(block_size, block_size).tril().bool().view(1, 1, block_size, -1))

    def split(self, t):
        return t.view(*t.shape[:2], self.n_head, self.d_head).transpose(1, 2)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.max_len:
            raise ValueError(f"too long: {T} > {self.max_len}")
        z = self.qkv(x)
        q, k, v = self.split(z[..., :C]), self.split(z[..., C : 2 * C]), self.split(z[..., 2 * C :])
        mask = self.causal[:, :, :T, :T].expand(B, self.n_head, T, T)
        if self.flash:
            p = self.dropouts["attention"].p if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        else:
            scores = torch.where(mask, (q * self.d_head**-0.5) @ k.transpose(-1, -2), -1e30)
            y = self.dropouts["attention"](softmax(scores)) @ v
        y = torch.cat([y[:, h] for h in range(self.n_head)], dim=-1)
        return self.dropouts["residual"](self.proj(y))


def max_path_difference(module, x):
    flash = module.flash
    training = module.training
    try:
        with torch.no_grad():
            module.eval()
            module.flash = True
            fast = module(x)
            module.flash = False
            slow = module(x)
            worst = 0.0
            for a, b in zip(fast.flatten(), slow.flatten(), strict=True):
                worst = max(worst, abs(a.item() - b.item()))
            return worst
    finally:
        module.flash = flash
        module.train(training)
