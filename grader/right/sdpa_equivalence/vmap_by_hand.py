"""vmap over heads by hand; a flash property; restores with contextlib."""

import contextlib

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_head does not divide n_embd")
        self.n_head, self.block_size, self.p = n_head, block_size, dropout
        self._flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    @property
    def flash(self):
        return self._flash

    @flash.setter
    def flash(self, value):
        self._flash = value

    def forward(self, x):
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError("sequence too long")
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).movedim(2, 1) for t in self.qkv(x).chunk(3, dim=-1))
        p = self.p if self.training else 0.0
        if self.flash:
            y = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(diagonal=1)

            def head(q, k, v):
                scores = (q @ k.mT) * q.shape[-1] ** -0.5
                return nn.functional.dropout(scores.masked_fill(future, -torch.inf).softmax(-1), p) @ v

            y = torch.vmap(head, in_dims=1, out_dims=1, randomness="different")(q, k, v)
        return nn.functional.dropout(self.proj(y.movedim(1, 2).flatten(2)), self.p, self.training)


@contextlib.contextmanager
def calm(module):
    flash, modes = module.flash, {m: m.training for m in module.modules()}
    module.eval()
    try:
        yield
    finally:
        module.flash = flash
        for m, mode in modes.items():
            m.training = mode


def max_path_difference(module, x):
    with calm(module), torch.no_grad():
        module.flash = True
        a = module(x)
        module.flash = False
        return (a - module(x)).abs().max().item()
