import math

import torch
from torch import nn


def softmax(z):
    top = z.amax(dim=-1, keepdim=True)
    e = (z - top).exp()
    return e / e.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.scale = 1 / math.sqrt(d_out)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError("too long: %d tokens for a context of %d" % (T, self.context_length))
        q, k, v = self.W_query(x) * self.scale, self.W_key(x), self.W_value(x)
        outputs = []
        for t in range(T):
            past_k, past_v = k[:, : t + 1], v[:, : t + 1]
            scores = torch.bmm(q[:, t : t + 1], past_k.transpose(1, 2))
            outputs.append(torch.bmm(self.attn_dropout(softmax(scores)), past_v))
        return torch.cat(outputs, dim=1)
