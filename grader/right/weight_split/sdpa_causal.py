import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out=} {num_heads=}")
        self.num_heads, self.context_length, self.p = num_heads, context_length, dropout
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.num_heads, -1)).swapaxes(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.context_length:
            raise ValueError(f"{x.size(1)} tokens, context {self.context_length}")
        q, k, v = map(self.split, (self.W_query(x), self.W_key(x), self.W_value(x)))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        return self.out_proj(y.swapaxes(1, 2).flatten(-2))
