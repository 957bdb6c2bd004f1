import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    """No reshape at all: every head gets its own copy of q, zero outside its own channels."""
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, f"{d_out} % {num_heads} != 0"
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        select = torch.eye(num_heads).repeat_interleave(d_out // num_heads, dim=1)
        self.register_buffer("select", select, persistent=False)        # nh, d_out
        self.register_buffer("later", torch.ones(context_length, context_length).triu(1).bool(), persistent=False)
        self.root = (d_out // num_heads) ** 0.5

    def forward(self, x):
        T = x.shape[1]
        if T > self.later.shape[0]:
            raise ValueError(f"T={T}, context_length={self.later.shape[0]}")
        sel = self.select.to(x.dtype)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = torch.einsum("bic,hc,bjc->bhij", q, sel, k) / self.root
        a = self.dropout(s.masked_fill(self.later[:T, :T], -torch.inf).softmax(-1))
        y = torch.einsum("bhij,bjc,hc->bic", a, v, sel)
        return self.out_proj(y)
