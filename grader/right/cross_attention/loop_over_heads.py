"""One head after the other, with slices of the channels."""

import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out = {d_out} is no multiple of num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        q = self.W_query(x)
        k = self.W_key(context)
        v = self.W_value(context)
        hd = q.shape[-1] // self.num_heads
        outs = []
        for h in range(self.num_heads):
            qh = q[..., h * hd : (h + 1) * hd]
            kh = k[..., h * hd : (h + 1) * hd]
            vh = v[..., h * hd : (h + 1) * hd]
            scores = torch.bmm(qh, kh.transpose(1, 2)) / math.sqrt(hd)
            if keep is not None:
                scores = scores.masked_fill(keep.unsqueeze(1) == 0, float("-inf"))
            outs.append(torch.bmm(torch.softmax(scores, dim=2), vh))
        return self.out_proj(torch.cat(outs, dim=2))
