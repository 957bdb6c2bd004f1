import math
import torch
import torch.nn as nn


class CrossAttention(nn.Module):
    """Online softmax over chunks of the context."""

    CHUNK = 3

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out")
        self.n = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        B, Tq, _ = x.shape
        Tk = context.shape[1]
        hd = self.W_query.out_features // self.n
        q = self.W_query(x).view(B, Tq, self.n, hd).transpose(1, 2) / math.sqrt(hd)
        m = q.new_full((B, self.n, Tq, 1), -1e30)
        l = q.new_zeros(B, self.n, Tq, 1)
        acc = q.new_zeros(B, self.n, Tq, hd)
        for i in range(0, Tk, self.CHUNK):
            c = context[:, i : i + self.CHUNK]
            k = self.W_key(c).view(B, -1, self.n, hd).transpose(1, 2)
            v = self.W_value(c).view(B, -1, self.n, hd).transpose(1, 2)
            s = q @ k.mT
            if keep is not None:
                s = s.masked_fill(~keep[:, None, None, i : i + self.CHUNK], -1e30)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = torch.exp(s - new)
            if keep is not None:
                p = p * keep[:, None, None, i : i + self.CHUNK]
            f = torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v
            m = new
        return self.out_proj((acc / l).transpose(1, 2).reshape(B, Tq, -1))
