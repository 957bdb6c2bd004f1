"""log_softmax and exp; the mask as logs of zeros and ones."""

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
        nh = self.num_heads
        q = torch.stack(self.W_query(x).chunk(nh, dim=-1), dim=1)
        k = torch.stack(self.W_key(context).chunk(nh, dim=-1), dim=1)
        v = torch.stack(self.W_value(context).chunk(nh, dim=-1), dim=1)
        logits = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
        if keep is not None:
            logits = logits + keep.to(logits.dtype).log()[:, None, None]
        y = torch.einsum("bhij,bhjd->bhid", logits.log_softmax(-1).exp(), v)
        return self.out_proj(torch.cat(y.unbind(1), dim=-1))
