import torch
import torch.nn as nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out} channels cannot be shared by {num_heads} heads")
        self.d_in = d_in
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def small_layer(self, big, h):
        rows = slice(h * self.head_dim, (h + 1) * self.head_dim)
        bias = None
        if big.bias is not None:
            bias = big.bias[rows]
        return big.weight[rows], bias

    def one_head(self, x, h):
        q = nn.functional.linear(x, *self.small_layer(self.W_query, h))
        k = nn.functional.linear(x, *self.small_layer(self.W_key, h))
        v = nn.functional.linear(x, *self.small_layer(self.W_value, h))
        scores = q.matmul(k.transpose(-1, -2))
        scores = scores / self.head_dim ** 0.5
        T = x.shape[1]
        visible = torch.tril(torch.ones(T, T, device=x.device))
        scores = scores.masked_fill(visible == 0, -torch.inf)
        weights = self.drop(torch.softmax(scores, dim=-1))
        return weights.matmul(v)

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} tokens, context_length {self.context_length}")
        answers = [self.one_head(x, h) for h in range(self.num_heads)]
        return self.out_proj(torch.cat(answers, dim=-1))
