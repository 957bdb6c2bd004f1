"""F.multi_head_attention_forward with its own key_padding_mask, True for ignored."""

import torch
import torch.nn.functional as F
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
        d_out = self.out_proj.out_features
        q = self.W_query(x).transpose(0, 1)
        k, v = (w(context).transpose(0, 1) for w in (self.W_key, self.W_value))
        same = torch.eye(d_out, dtype=q.dtype, device=q.device)
        y, _ = F.multi_head_attention_forward(
            q, k, v, d_out, self.num_heads, None, None, None, None, False, 0.0, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=None if keep is None else ~keep, need_weights=False,
            use_separate_proj_weight=True, q_proj_weight=same, k_proj_weight=same, v_proj_weight=same,
        )  # fmt: skip
        return y.transpose(0, 1)
