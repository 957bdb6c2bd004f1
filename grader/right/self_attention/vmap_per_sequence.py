import torch
from torch import nn, Tensor

class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        order = torch.arange(context_length)
        self.register_buffer("order", order)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        T = q.shape[0]
        pos = self.order[:T]
        s = q.matmul(k.t()) * q.shape[1] ** -0.5
        s = torch.where(pos[None, :] > pos[:, None], torch.finfo(s.dtype).min, s)
        return s.softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > len(self.order):
            raise ValueError(f"at most {len(self.order)} tokens, got {x.shape[1]}")
        a = torch.vmap(self.weights)(self.W_query(x), self.W_key(x))
        return self.drop(a) @ self.W_value(x)
