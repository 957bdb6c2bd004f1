import math

import torch
from torch import nn


class CausalAttention(nn.Module):
    """Attend with one causal head, with learned projections and no output projection.

    Attributes:
        W_query: linear layer from d_in to d_out channels.
        W_key: likewise, for the keys.
        W_value: likewise, for the values.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False
    ) -> None:
        """Set up the three projections, the dropout and the mask.

        Args:
            d_in: channels of an input token.
            d_out: channels of an output token, and the width of queries, keys and values.
            context_length: the largest number of tokens that a sequence may have.
            dropout: probability in [0, 1] that an attention weight is struck out, in training only.
            qkv_bias: whether the three projections have a bias.
        """
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", mask)  # True: may look

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix, for each token, the values of itself and the tokens before it.

        Args:
            x: tokens, (B, T, d_in), in the dtype and on the device of the weights; T at most context_length.

        Returns:
            Context vectors, (B, T, d_out).

        Raises:
            ValueError: if T is larger than context_length; the message names both numbers.
        """
        T = x.shape[1]
        if self.context_length < T:
            raise ValueError(f"{T} tokens do not fit a context of {self.context_length}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)  # each (B, T, d_out)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))  # (B, T, T)
        return weights @ v  # (B, T, d_out)
