import math
import torch
import torch.nn as nn

def fold(t, n):
    B, T, C = t.shape
    return t.reshape(B, T, n, C // n).permute(0, 2, 1, 3).flatten(0, 1)

def unfold(t, n):
    t = t.unflatten(0, (-1, n))
    return torch.cat(t.unbind(1), dim=-1)

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out (%d) is not divisible by num_heads (%d)" % (d_out, num_heads))
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.attn_dropout = nn.Dropout(dropout)
        bias = torch.zeros(context_length, context_length)
        bias[torch.triu(torch.ones_like(bias), 1) == 1] = -1e30
        self.register_buffer("bias", bias)

    def forward(self, x):
        T = x.shape[1]
        if T > self.bias.shape[0]:
            raise ValueError("T (%d) > context_length (%d)" % (T, self.bias.shape[0]))
        n = self.num_heads
        q = fold(self.W_query(x), n)
        k = fold(self.W_key(x), n)
        v = fold(self.W_value(x), n)
        s = torch.baddbmm(self.bias[:T, :T].to(q.dtype), q, k.transpose(1, 2), alpha=1.0 / math.sqrt(q.shape[2]))
        w = self.attn_dropout(nn.functional.softmax(s, dim=2))
        return self.out_proj(unfold(torch.bmm(w, v), n))
