import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_upper_left


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {d_out} channels")
        self.num_heads, self.context_length, self.p = num_heads, context_length, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(f"{T} tokens, at most {self.context_length}")
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        y = F.scaled_dot_product_attention(q, k, v, causal_upper_left(T, T), self.p if self.training else 0.0)
        return self.out_proj(y.transpose(1, 2).flatten(2))
