"""One query of one head as a function; vmap does the rest."""

import torch
from torch import nn
from torch.func import vmap


def ask(q, k, v, real):
    scores = (k @ q / q.shape[-1] ** 0.5).masked_fill(~real, -torch.inf)
    return scores.softmax(0) @ v


heads = vmap(ask, in_dims=(0, 1, 1, None))
queries = vmap(heads, in_dims=(0, None, None, None))
sequences = vmap(queries)


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out = {d_out} is no multiple of num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        if keep is None:
            keep = torch.ones(context.shape[:2], dtype=torch.bool, device=context.device)
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)) for t in (self.W_query(x), self.W_key(context), self.W_value(context)))
        y = sequences(q, k, v, keep)  # (B, T_q, nh, hd)
        return self.out_proj(y.flatten(2))
