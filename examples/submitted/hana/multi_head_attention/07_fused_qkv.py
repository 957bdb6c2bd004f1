import math

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    """Attend causally with n_head heads, from one fused projection, as GPT-2 does.

    Attributes:
        qkv: Linear layer from n_embd to three times n_embd, without bias: queries, keys, values, in order.
        proj: Linear layer from n_embd to n_embd, without bias.
    """

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0) -> None:
        """Make the two layers, both dropouts and whatever holds the causal mask.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many heads share the channels evenly.
            block_size: The most tokens that forward accepts.
            dropout: Probability in [0, 1), while training, that an attention weight is dropped, and that an
                output channel is.

        Raises:
            ValueError: n_head does not divide n_embd; the message names both numbers.
        """
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        visible = torch.ones(block_size, block_size, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)  # True where the query may look

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token gather from itself and its past, all heads at once, the arithmetic written out.

        Args:
            x: (B, T, C), floating point, T at most block_size. Left as it was.

        Returns:
            (B, T, C), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds block_size; the message names both numbers.
        """
        B, T, C = x.shape
        if self.block_size < T:
            raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")

        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)
        scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)
        weights = self.attn_dropout(scores.softmax(dim=-1))  # (B, nh, T, T)

        y = weights @ v  # (B, nh, T, hd)
        y = y.transpose(1, 2).reshape(B, T, C)  # (B, T, C)
        return self.resid_dropout(self.proj(y))  # (B, T, C)


def gpt2_attention(size: str) -> CausalSelfAttention:
    """Make the attention module of one of the four GPT-2 models, without dropout.

    Args:
        size: "small", "medium", "large" or "xl".

    Returns:
        A CausalSelfAttention with a block_size of 1024 tokens and that model's width and number of heads.

    Raises:
        ValueError: size is none of the four; the message lists them.
    """
    sizes = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in sizes:
        raise ValueError(f"no GPT-2 of size {size!r}; there are {', '.join(sizes)}")
    n_embd, n_head = sizes[size]
    return CausalSelfAttention(n_embd, n_head, block_size=1024)
