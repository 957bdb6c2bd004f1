import torch
from torch import nn


def softmax(s):
    s = s - s.max(dim=-1, keepdim=True).values
    e = torch.exp(s)
    return e / e.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout
        self.context = context_length
        self._cache = {}

    def mask(self, T, device):
        if (T, device) not in self._cache:
            self._cache[T, device] = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self._cache[T, device]

    def forward(self, x):
        T = x.shape[1]
        if T > self.context:
            raise ValueError(f"{T} tokens, but the context is {self.context}")
        k = self.W_key(x).swapaxes(1, 2)
        s = torch.matmul(self.W_query(x), k) / torch.sqrt(torch.tensor(k.shape[1]))
        s[self.mask(T, x.device).expand_as(s)] = float("-inf")
        w = softmax(s)
        if self.training and self.p > 0:
            keep = (torch.rand_like(w) >= self.p).to(w.dtype)
            w = w * keep / (1 - self.p)
        return w @ self.W_value(x)
