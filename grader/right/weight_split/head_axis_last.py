import torch
from torch import nn
import torch.nn.functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        q, r = divmod(d_out, num_heads)
        if r:
            raise ValueError(f"d_out={d_out}, num_heads={num_heads}")
        self.shape = (num_heads, q)
        self.context_length = context_length
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} > {self.context_length}")
        q, k, v = (f(x).unflatten(-1, self.shape) for f in (self.W_query, self.W_key, self.W_value))
        # keys stay in dim 2, heads in dim 3
        s = torch.einsum("bihd,bjhd->bijh", q * self.shape[1] ** -0.5, k)
        i = torch.arange(n, device=x.device)
        s = s.masked_fill((i[None, :] > i[:, None]).view(1, n, n, 1), float("-inf"))
        w = F.dropout(F.softmax(s, dim=2), self.dropout, self.training)
        return self.out_proj(torch.einsum("bijh,bjhd->bihd", w, v).flatten(2))
