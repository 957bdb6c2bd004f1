import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Upcasts for the softmax as large models do."""

    W_query: nn.Linear
    W_key: nn.Linear
    W_value: nn.Linear

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.attn_drop = nn.Dropout(dropout)
        bias = torch.zeros(context_length, context_length)
        bias[torch.ones_like(bias).triu(1) > 0] = -1e4
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        if T > len(self.bias):
            raise ValueError(f"T = {T} > context_length = {len(self.bias)}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        att = (q @ k.mT) / math.sqrt(k.size(-1)) + self.bias[:T, :T]
        att = torch.softmax(att, dim=-1, dtype=torch.float32).to(v.dtype)
        return self.attn_drop(att) @ v
