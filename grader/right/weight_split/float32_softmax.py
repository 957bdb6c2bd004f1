import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, num_heads: int, dropout=0.0, qkv_bias=False):
        super().__init__()
        head_dim, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} channels in {num_heads} heads leave {rest}")
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head, self.hd = num_heads, head_dim
        bias = torch.zeros(context_length, context_length)
        bias[torch.ones_like(bias).triu(1) > 0] = -1e4
        self.register_buffer("bias", bias.view(1, 1, context_length, context_length))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.bias.size(-1):
            raise ValueError(f"T = {T} > context_length = {self.bias.size(-1)}")
        k = self.W_key(x).view(B, T, self.n_head, self.hd).permute(0, 2, 3, 1)  # (B, nh, hd, T)
        q = self.W_query(x).view(B, T, self.n_head, self.hd).permute(0, 2, 1, 3)
        v = self.W_value(x).view(B, T, self.n_head, self.hd).permute(0, 2, 1, 3)
        att = (q @ k) / math.sqrt(self.hd) + self.bias[:, :, :T, :T]
        att = torch.softmax(att, dim=-1, dtype=torch.float32).type_as(v)
        y = self.attn_dropout(att) @ v
        return self.out_proj(y.permute(0, 2, 1, 3).contiguous().view(B, T, -1))
