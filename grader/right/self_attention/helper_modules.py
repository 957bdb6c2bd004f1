import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, q, k):
        return (q @ k.mT) / torch.tensor(float(q.shape[-1]), dtype=q.dtype, device=q.device).sqrt()


class HideFuture(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.register_buffer("visible", torch.tril(torch.ones(size, size)))

    def forward(self, scores):
        T = scores.shape[-1]
        if T > self.size:
            raise ValueError(f"T = {T} is larger than context_length = {self.size}")
        return scores.masked_fill(self.visible[:T, :T] == 0, float("-inf"))


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.scores = Scores()
        self.weights = nn.Sequential(HideFuture(context_length), nn.Softmax(dim=-1), nn.Dropout(dropout))

    def forward(self, x):
        return self.weights(self.scores(self.W_query(x), self.W_key(x))) @ self.W_value(x)
