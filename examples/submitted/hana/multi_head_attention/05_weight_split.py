import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """Attend causally with several heads cut from three full-width projections.

    Attributes:
        W_query, W_key, W_value: Linear layers from d_in to d_out; a bias only where qkv_bias asks for one.
        out_proj: Linear layer from d_out to d_out, with a bias. It mixes the heads.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
    ) -> None:
        """Make the four layers, the dropout and whatever holds the causal mask.

        Args:
            d_in: Channels of each incoming token.
            d_out: Channels of each outgoing token, all heads together.
            context_length: The most tokens that forward accepts.
            num_heads: How many heads share the d_out channels evenly.
            dropout: Probability in [0, 1) that an attention weight is dropped while training.
            qkv_bias: Whether the query, key and value layers have a bias.

        Raises:
            ValueError: num_heads does not divide d_out; the message names both numbers.
        """
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} cannot be cut into num_heads = {num_heads} equal heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = dropout
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)  # True where the key lies ahead

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token gather from itself and its past, once for each head.

        Args:
            x: (B, T, d_in), floating point, T at most context_length. Left as it was.

        Returns:
            (B, T, d_out), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds context_length; the message names both numbers.
        """
        B, T, _ = x.shape
        if self.context_length < T:
            raise ValueError(f"T = {T} tokens do not fit context_length = {self.context_length}")

        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)  # (B, T, d_out) each
        q = q.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        v = v.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)

        scores = q @ k.transpose(-2, -1) / self.head_dim**0.5  # (B, nh, T, T)
        scores = scores.masked_fill(self.future[:T, :T], float("-inf"))
        weights = torch.nn.functional.dropout(scores.softmax(dim=-1), self.dropout)  # (B, nh, T, T)

        context = (weights @ v).transpose(1, 2)  # (B, T, nh, hd)
        context = context.contiguous().view(B, T, self.num_heads * self.head_dim)  # (B, T, d_out)
        return self.out_proj(context)  # (B, T, d_out)
