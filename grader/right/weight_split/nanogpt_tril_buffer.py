import math
import torch
import torch.nn as nn
from torch.nn import functional as F

class MultiHeadAttention(nn.Module):

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super(MultiHeadAttention, self).__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out (%d) must be a multiple of num_heads (%d)" % (d_out, num_heads))
        # key, query, value projections for all heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key   = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        # output projection
        self.out_proj = nn.Linear(d_out, d_out)
        # regularization
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head = num_heads
        self.d_out = d_out
        self.block = context_length
        self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length))
                                     .view(1, 1, context_length, context_length))

    def forward(self, x):
        B, T, _ = x.size()
        if T > self.block:
            raise ValueError("T = %d exceeds context_length = %d" % (T, self.block))
        hd = self.d_out // self.n_head
        q = self.W_query(x).view(B, T, self.n_head, hd).transpose(1, 2) # (B, nh, T, hs)
        k = self.W_key(x).view(B, T, self.n_head, hd).transpose(1, 2) # (B, nh, T, hs)
        v = self.W_value(x).view(B, T, self.n_head, hd).transpose(1, 2) # (B, nh, T, hs)

        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:,:,:T,:T] == 0, float('-inf'))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
        y = y.transpose(1, 2).contiguous().view(B, T, self.d_out) # re-assemble all head outputs side by side
        return self.out_proj(y)
