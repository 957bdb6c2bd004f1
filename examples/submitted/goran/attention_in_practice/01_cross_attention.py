import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out} channels")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def heads(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, context, keep=None):
        q, k, v = self.heads(self.W_query(x)), self.heads(self.W_key(context)), self.heads(self.W_value(context))
        mask = None if keep is None else ~keep[:, None, None, :]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(y.transpose(1, 2).flatten(2))
