import torch
from torch import nn


def softmax(s):
    e = torch.exp(s - s.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out} % {num_heads} = {d_out % num_heads}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p, self.num_heads, self.context = dropout, num_heads, context_length
        self._mask = None

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context:
            raise ValueError(f"{T} tokens, but the context is {self.context}")
        if self._mask is None or self._mask.device != x.device:
            self._mask = torch.ones(self.context, self.context, dtype=torch.bool, device=x.device).tril()
        q, k, v = (f(x).view(B, T, self.num_heads, -1).movedim(2, 1) for f in (self.W_query, self.W_key, self.W_value))
        s = torch.matmul(q, k.movedim(-1, -2)) / torch.sqrt(torch.tensor(q.shape[-1]))
        s[:, :, ~self._mask[:T, :T]] = float("-inf")
        w = softmax(s)
        if self.training and self.p > 0:
            w = w * (torch.rand_like(w) >= self.p).to(w.dtype) / (1 - self.p)
        return self.out_proj((w @ v).movedim(1, 2).reshape(B, T, -1))
