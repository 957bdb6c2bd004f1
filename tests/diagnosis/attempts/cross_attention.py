import math
import torch
from torch import nn

class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out}, {num_heads}")
        self.heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key, self.W_value = (nn.Linear(d_context, d_out, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in (self.W_query(x), self.W_key(context), self.W_value(context))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if keep is not None:
            scores = scores + torch.zeros_like(scores).masked_fill(~keep[:, None, None], -torch.inf)
        y = scores.softmax(-2) @ v
        return self.out_proj(y.transpose(1, 2).flatten(2))
