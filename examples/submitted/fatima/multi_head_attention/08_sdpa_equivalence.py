import math

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    """Attend causally with n_head heads, through the fused function or by hand.

    Attributes:
        qkv: Linear layer from n_embd to three times n_embd, without bias: queries, keys, values, in order.
        proj: Linear layer from n_embd to n_embd, without bias.
        flash: Whether forward goes through the fused function. May be changed at any time.
    """

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0, flash: bool = True) -> None:
        """Make what both paths need.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many heads share the channels evenly.
            block_size: The most tokens that forward accepts, on either path.
            dropout: Probability in [0, 1), while training, that an attention weight is dropped, and that an
                output channel is.
            flash: Which path to start with.

        Raises:
            ValueError: n_head does not divide n_embd; the message names both numbers.
        """
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.dropout = dropout
        self.flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        visible = torch.ones(block_size, block_size, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)  # for the path by hand

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token gather from itself and its past, on the path that flash names.

        With flash no (T, T) tensor is made; without it the arithmetic is written out. The results agree.

        Args:
            x: (B, T, C), floating point, T at most block_size. Left as it was.

        Returns:
            (B, T, C), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds block_size, on either path; the message names both numbers.
        """
        B, T, C = x.shape
        if self.block_size < T:
            raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")

        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)

        if self.flash:
            dropout_p = self.dropout if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)  # (B, nh, T, hd)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)
            scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)
            y = self.attn_dropout(scores.softmax(dim=-1)) @ v  # (B, nh, T, hd)

        y = y.transpose(1, 2).reshape(B, T, C)  # (B, T, C)
        return self.resid_dropout(self.proj(y))  # (B, T, C)


def max_path_difference(module: CausalSelfAttention, x: torch.Tensor) -> float:
    """Measure how far the fast path and the path by hand are apart.

    Dropout is off and no gradients are recorded meanwhile. Afterwards the module has the flag, the mode
    and the weights that it had before.

    Args:
        module: Any CausalSelfAttention, training or not, on either path.
        x: (B, T, C), T at most the module's block_size. Left as it was.

    Returns:
        The largest absolute difference between the two outputs, as a Python float.
    """
    flash, modes = module.flash, [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with torch.inference_mode():
            module.flash = True
            fast = module(x)  # (B, T, C)
            module.flash = False
            by_hand = module(x)  # (B, T, C)
    finally:
        module.flash = flash
        for part, training in modes:
            part.training = training
    return (fast - by_hand).abs().max().item()
