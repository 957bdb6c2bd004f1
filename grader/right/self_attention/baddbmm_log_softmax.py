import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.context_length = context_length

    @staticmethod
    def _bias(T, like):
        i, j = torch.meshgrid(*(torch.arange(T, device=like.device),) * 2, indexing="ij")
        return (j <= i).to(like.dtype).log()

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        q, k, v = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        bias = self._bias(T, q).expand(B, T, T)
        s = torch.baddbmm(bias, q, k.movedim(-1, -2), beta=1.0, alpha=q.size(-1) ** -0.5)
        w = s.log_softmax(-1).exp()
        return torch.dropout(w, self.dropout, self.training).bmm(v)
