import math
import torch
import torch.nn as nn
import torch.nn.functional as F

def _future(n, like):
    return torch.full((n, n), -math.inf, dtype=like.dtype, device=like.device).triu_(1)

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p, self.context_length = dropout, context_length

    def forward(self, x):
        T = x.size(1)
        assert T <= self.context_length, (T, self.context_length)
        layers = (self.W_query, self.W_key, self.W_value)
        W = torch.cat([l.weight for l in layers])
        b = None if self.W_query.bias is None else torch.cat([l.bias for l in layers])
        q, k, v = F.linear(x, W, b).tensor_split(3, dim=-1)
        s = torch.baddbmm(_future(T, x), q, k.mT, alpha=1 / math.sqrt(k.size(-1)))
        a = F.dropout(torch.softmax(s, 2, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32).to(x.dtype), self.p, self.training)
        return torch.bmm(a, v)
