import torch
from torch import nn
import torch.nn.functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"num_heads={num_heads} must divide d_out={d_out}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.n, self.p, self.ctx = num_heads, dropout, context_length

    def forward(self, x):
        T = x.shape[1]
        if T > self.ctx:
            raise ValueError(f"{T} tokens do not fit in a context of {self.ctx}")
        q, k, v = (w(x).transpose(0, 1) for w in (self.W_query, self.W_key, self.W_value))
        E = q.shape[-1]
        hide = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)   # here True = hidden
        one = torch.eye(E, dtype=x.dtype, device=x.device)
        y, _ = F.multi_head_attention_forward(
            q, k, v, E, self.n, None, None, None, None, False, self.p,
            self.out_proj.weight, self.out_proj.bias,
            training=self.training, need_weights=False, attn_mask=hide,
            use_separate_proj_weight=True, q_proj_weight=one, k_proj_weight=one, v_proj_weight=one)
        return y.transpose(0, 1)
