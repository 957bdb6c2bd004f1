import torch
from torch import nn

class CausalAttention(nn.Module):
    """No mask anywhere: position t simply never meets what comes after it."""
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.limit = context_length
        self.drop = nn.Dropout(dropout)
        self.temp = d_out ** 0.5

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.limit:
            raise ValueError(f"{T} tokens, but context_length is {self.limit}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        out = []
        for t in range(T):
            seen_k, seen_v = k[:, : t + 1], v[:, : t + 1]
            s = torch.einsum("bd,bjd->bj", q[:, t], seen_k) / self.temp
            w = self.drop(s.softmax(-1))
            out.append(torch.einsum("bj,bjd->bd", w, seen_v))
        return torch.stack(out, 1)
