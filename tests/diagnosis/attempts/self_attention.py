import torch
from torch import nn

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.layers = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.context_length, self.dropout = context_length, nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(f"{T}, {self.context_length}")
        q, k, v = (layer(x) for layer in self.layers)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf)
        return self.dropout(scores.softmax(-1)) @ v
