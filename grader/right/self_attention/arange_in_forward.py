import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super(CausalAttention, self).__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias))
        self.max_len = context_length
        self.p = dropout

    def forward(self, x):
        b, t, _ = x.shape
        assert t <= self.max_len, f"{t} tokens do not fit into a context of {self.max_len}"
        steps = torch.arange(t, device=x.device)
        may_look = steps.unsqueeze(1) >= steps.unsqueeze(0)
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        att = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(k.shape[-1])
        att = torch.where(may_look, att, torch.full_like(att, float("-inf")))
        att = F.dropout(F.softmax(att, dim=2), p=self.p, training=self.training)
        return torch.einsum("bij,bjd->bid", att, v)
