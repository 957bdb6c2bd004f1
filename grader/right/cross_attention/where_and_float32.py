"""torch.where, a softmax in float32 at least, queries scaled before the product."""

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

    def split(self, t):
        return t.view(t.shape[0], t.shape[1], self.num_heads, t.shape[2] // self.num_heads).transpose(1, 2)

    def forward(self, x: torch.Tensor, context: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        q = self.split(self.W_query(x))
        q = q / q.shape[-1] ** 0.5
        scores = q @ self.split(self.W_key(context)).mT
        if keep is not None:
            lowest = torch.tensor(-torch.inf, dtype=scores.dtype, device=scores.device)
            scores = torch.where(keep.unsqueeze(1).unsqueeze(2).expand_as(scores), scores, lowest)
        weights = torch.softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(x.dtype)
        y = weights @ self.split(self.W_value(context))
        return self.out_proj(y.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))
