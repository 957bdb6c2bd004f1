import torch
import torch.nn as nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if num_heads < 1 or d_out % num_heads > 0:
            raise ValueError(f"cannot split {d_out} channels into {num_heads} heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("inv_sqrt", torch.tensor(self.head_dim, dtype=torch.float64).rsqrt(), persistent=False)

    def forward(self, x, context, keep=None):
        q = self.W_query(x).unflatten(2, (self.num_heads, self.head_dim))
        k = self.W_key(context).unflatten(2, (self.num_heads, self.head_dim))
        v = self.W_value(context).unflatten(2, (self.num_heads, self.head_dim))
        # (B, Tk, H, Tq) with keys first so that a boolean index reaches them
        s = torch.einsum("bkhd,bqhd->bkhq", k, q) * self.inv_sqrt.to(q.dtype)
        if keep is not None:
            s = s.clone()
            s[~keep] = float("-inf")
        w = s.softmax(dim=1)
        return self.out_proj(torch.einsum("bkhq,bkhd->bqhd", w, v).flatten(2))
