"""A small language model around a given attention module: nanoGPT's architecture, trained in a minute on a CPU.

B sequences, T tokens (characters), C channels, a vocabulary of V characters.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .modules import at_most_two_values


class Block(nn.Module):
    """Attention, then an MLP on each token; each is added to its input."""

    def __init__(self, attention: nn.Module, channels: int) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(channels)
        self.attention = attention
        self.norm_2 = nn.LayerNorm(channels)
        self.mlp = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(), nn.Linear(4 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, C) from (B, T, C)."""
        return self.step(x)[0]

    def step(self, x: Tensor, cache: object = None) -> tuple[Tensor, object]:
        """Also what the attention handed back for the next tokens, if it did."""
        given = self.attention(self.norm_1(x)) if cache is None else self.attention(self.norm_1(x), cache)
        y, cache = given if isinstance(given, tuple | list) else (given, None)
        x = x + y  # (B, T, C)
        change: Tensor = self.mlp(self.norm_2(x))  # (B, T, C)
        return x + change, cache


class LanguageModel(nn.Module):
    """Predicts each next token from those before it, if its attention is causal."""

    def __init__(self, attentions: Sequence[nn.Module], vocabulary: int, channels: int, block_size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, channels)
        self.positions = nn.Embedding(block_size, channels)
        self.blocks = nn.ModuleList(Block(attention, channels) for attention in attentions)
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return (B, T, vocabulary) logits for (B, T) ids."""
        return self.step(ids, 0, [None] * len(self.blocks))[0]

    def step(self, ids: Tensor, past: int, caches: Sequence[object]) -> tuple[Tensor, list[object]]:
        """Return the logits of the tokens that come after `past` others, and what each block hands back for the next ones.

        caches: what each block handed back for those others; None where there are none, or all are fed again.
        """
        x = self.tokens(ids) + self.positions.weight[past : past + ids.shape[1]]  # (B, T) -> (B, T, C)
        handed_back = []
        for block, cache in zip(self.blocks, caches, strict=True):
            assert isinstance(block, Block)
            x, cache = block.step(x, cache)  # (B, T, C)
            handed_back.append(cache)
        logits: Tensor = self.head(self.norm(x))  # (B, T, V)
        return logits, handed_back


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Draw each weight from its own generator, which is seeded by the weight's name.

    So a weight has the same initial numbers whatever the order of layers is and whatever else the module has. A matrix
    gets variance 1 / its inputs, so that q and k have variance 1; embeddings get 0.3²; biases start at 0. A parameter with
    at most two values (ones; a mask) is not a random weight and keeps them.
    """
    for name, parameter in model.named_parameters():
        if not parameter.is_floating_point() or at_most_two_values(parameter):
            continue
        if parameter.dim() < 2:
            parameter.zero_()
            continue
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        embeds = name in ("tokens.weight", "positions.weight")
        spread = 0.3 if embeds else parameter.shape[-1] ** -0.5
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
