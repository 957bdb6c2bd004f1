import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("no")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        W = self.out_proj.weight
        H, hd = self.num_heads, W.shape[0] // self.num_heads
        out = self.out_proj.bias.expand(*x.shape[:2], -1)
        for h in range(H):
            rows = slice(h * hd, h * hd + hd)
            q = nn.functional.linear(x, self.W_query.weight[rows])
            k = nn.functional.linear(context, self.W_key.weight[rows])
            v = nn.functional.linear(context, self.W_value.weight[rows])
            s = torch.bmm(q, k.mT).div(hd**0.5)
            if keep is not None:
                s = s.masked_fill(~keep[:, None, :], float("-inf"))
            y = s.softmax(2).bmm(v)
            out = out + y @ W[:, rows].T
        return out
