import torch
from torch import nn
from torch.nn.functional import dropout as drop_, linear


class Projection(nn.Linear):
    """A Linear that knows how to work for one head only."""

    def for_head(self, x, rows):
        bias = None if self.bias is None else self.bias[rows]
        return linear(x, self.weight[rows], bias)


class AttentionBase(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout, qkv_bias):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out=} is not a multiple of {num_heads=}")
        self.d_out, self.num_heads, self.context_length = d_out, num_heads, context_length
        self.p = dropout
        self.W_query = Projection(d_in, d_out, bias=qkv_bias)
        self.W_key = Projection(d_in, d_out, bias=qkv_bias)
        self.W_value = Projection(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("hidden", torch.ones(context_length, context_length, dtype=torch.bool).triu_(1))

    def attend(self, q, k, v):
        n = q.shape[-2]
        s = torch.matmul(q, k.transpose(-1, -2))
        s = s / q.shape[-1] ** 0.5
        s = s.masked_fill(self.hidden[:n, :n], -float("inf"))
        w = torch.nn.functional.softmax(s, dim=-1)
        w = drop_(w, self.p, training=self.training)
        return torch.matmul(w, v)


class MultiHeadAttention(AttentionBase):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, num_heads, dropout, qkv_bias)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} > context_length {self.context_length}")
        hd = self.d_out // self.num_heads
        answers = {}
        for h in range(self.num_heads):
            rows = slice(h * hd, (h + 1) * hd)
            q = self.W_query.for_head(x, rows)
            k = self.W_key.for_head(x, rows)
            v = self.W_value.for_head(x, rows)
            answers[h] = self.attend(q, k, v)
        out = torch.cat([answers[h] for h in sorted(answers)], dim=2)
        return self.out_proj(out)
