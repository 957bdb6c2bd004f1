import einops
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)  # noqa: E731
        self.W_query, self.W_key, self.W_value = make(), make(), make()
        self.drop = nn.Dropout(p=dropout)
        bias = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("bias", torch.triu(bias, diagonal=1))

    def forward(self, x):
        length = x.shape[-2]
        if length > len(self.bias):
            raise ValueError(f"sequence of {length} tokens, context of {len(self.bias)}")
        scores = einops.einsum(self.W_query(x), self.W_key(x), "b i d, b j d -> b i j")
        scores = scores * self.W_key.out_features**-0.5 + self.bias[:length, :length]
        weights = self.drop(scores.softmax(dim=-1))
        return einops.einsum(weights, self.W_value(x), "b i j, b j d -> b i d")
