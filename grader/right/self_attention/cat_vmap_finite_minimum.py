import torch
import torch.nn.functional as F
from torch import nn
from torch.func import vmap


def _table(q, k):
    return q @ k.t() * q.shape[-1] ** -0.5


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False, *, name="head"):
        super().__init__()
        self.name = name
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)

    def _project(self, x):
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if self.W_query.bias is None else torch.cat([layer.bias for layer in layers])
        return F.linear(x, weight, bias).tensor_split(3, dim=-1)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{self.name}: {n} tokens, at most {self.context_length}")
        q, k, v = self._project(x)
        scores = vmap(_table)(q, k)
        hidden = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).type_as(v)
        return vmap(torch.mm)(self.drop(weights), v)
