import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        head_dim, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"d_out {d_out} / num_heads {num_heads} leaves a remainder of {rest}")
        self.num_heads, self.head_dim = num_heads, head_dim
        self.dropout_p = dropout
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out)
        visible = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("visible", visible)

    def to_heads(self, t):
        return t.unflatten(-1, (self.num_heads, self.head_dim)).swapaxes(1, 2)

    def forward(self, x):
        n, longest = x.shape[1], len(self.visible)
        if n > longest:
            raise ValueError(f"got {n} tokens, can take {longest}")
        q = self.to_heads(self.W_query(x))
        k = self.to_heads(self.W_key(x))
        v = self.to_heads(self.W_value(x))
        p = self.dropout_p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.visible[:n, :n], dropout_p=p)
        y = y.swapaxes(1, 2).flatten(2)
        return self.out_proj(y)
