import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.p = dropout
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x), dropout_p=p, is_causal=True
        )
