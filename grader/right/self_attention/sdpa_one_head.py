import torch
from torch import nn
import torch.nn.functional as F

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        nn.Module.__init__(self)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.register_buffer("allowed", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        if T > self.allowed.shape[0]:
            raise ValueError(f"T={T} > context_length={self.allowed.shape[0]}")
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x),
            attn_mask=self.allowed[:T, :T],
            dropout_p=self.dropout if self.training else 0.0,
        )
