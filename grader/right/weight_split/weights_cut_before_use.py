import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    """Cuts the weights into heads in place of the activations, and sums the heads' projections."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"num_heads={num_heads} must divide d_out={d_out}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.nh, self.ctx, self.p = num_heads, context_length, dropout

    def _head(self, layer, x, rows):
        return F.linear(x, layer.weight[rows], None if layer.bias is None else layer.bias[rows])

    def forward(self, x):
        T = x.shape[1]
        if T > self.ctx:
            raise ValueError(f"T={T} > {self.ctx}")
        hd = self.out_proj.in_features // self.nh
        out = self.out_proj.bias
        seen = torch.ones(T, T, device=x.device).tril().bool()
        for start in range(0, hd * self.nh, hd):
            rows = slice(start, start + hd)
            q, k, v = (self._head(layer, x, rows) for layer in (self.W_query, self.W_key, self.W_value))
            p = self.p if self.training else 0.0
            head = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=p)
            out = out + head @ self.out_proj.weight[:, rows].T
        return out
