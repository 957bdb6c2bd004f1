import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    """A loop over heads; every head takes its own slice of the three projections."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out and num_heads")
        print("d_in", d_in, "d_out", d_out)
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.nh = num_heads
        self.register_buffer("tri", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        T = x.shape[1]
        if T > self.tri.shape[0]:
            raise ValueError(f"too many tokens: {T} > {self.tri.shape[0]}")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        hd = Q.shape[2] // self.nh
        heads = []
        for h in range(self.nh):
            q, k, v = Q[:, :, h * hd : (h + 1) * hd], K[:, :, h * hd : (h + 1) * hd], V[:, :, h * hd : (h + 1) * hd]
            s = torch.matmul(q, k.permute(0, 2, 1)) / (hd**0.5)
            s = s.masked_fill(self.tri[:T, :T] == 0, float("-inf"))
            heads.append(torch.matmul(self.drop(torch.softmax(s, dim=2)), v))
        return self.out_proj(torch.cat(heads, dim=2))
