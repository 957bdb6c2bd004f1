from torch import nn, Tensor
from torch.nn.functional import scaled_dot_product_attention


class CausalAttention(nn.Module):
    """One causal head through the fused function."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query: nn.Linear = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key: nn.Linear = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value: nn.Linear = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.context_length: int = context_length
        self.dropout: float = dropout

    def forward(self, x: Tensor) -> Tensor:
        if (tokens := x.shape[1]) > self.context_length:
            raise ValueError(f"{tokens=} exceeds {self.context_length=}")
        return scaled_dot_product_attention(
            query=self.W_query(x),
            key=self.W_key(x),
            value=self.W_value(x),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=True,
        )
