import torch
import torch.nn.functional as F
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.register_buffer("may_look", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)))

    def forward(self, x):
        _, T, _ = x.shape
        assert T <= self.may_look.shape[0], "sequence longer than the context"
        q = self.W_query(x).unsqueeze(1)
        k = self.W_key(x).unsqueeze(1)
        v = self.W_value(x).unsqueeze(1)
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=self.may_look[:T, :T], dropout_p=self.dropout if self.training else 0.0
        )
        return out.squeeze(1)
