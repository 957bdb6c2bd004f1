"""GPT-2, with a function of yours in place of its attention.

The weights are those of the published model, by its names. Everything but the attention is here:
embeddings, layer norms, MLPs, and the head. `attention(number, x)` is called for each block, and
the model's own attention, `GPT2.attention`, is one such function. B is the number of sequences, T
of tokens, C of channels, V of tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

# takes the number of a block, counted from 0, and its input (B, T, C); returns (B, T, C)
Attention = Callable[[int, Tensor], Tensor]
EPSILON = 1e-5  # of the layer norms


@dataclass(frozen=True)
class Sizes:
    """The sizes of a GPT-2, by their names in its config.json.

    The small one has 12 layers with 12 heads, 768 channels, 1024 positions and 50257 tokens.
    """

    n_layer: int
    n_head: int
    n_embd: int
    n_positions: int
    vocab_size: int

    @property
    def head_dim(self) -> int:
        """The channels of one head, hd."""
        return self.n_embd // self.n_head

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight by its name."""
        C = self.n_embd
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (self.vocab_size, C),
            "wpe.weight": (self.n_positions, C),
            "ln_f.weight": (C,),
            "ln_f.bias": (C,),
        }
        for number in range(self.n_layer):
            for name in ("ln_1", "ln_2"):
                shapes[f"h.{number}.{name}.weight"] = shapes[f"h.{number}.{name}.bias"] = (C,)
            for name, inputs, outputs in (
                ("attn.c_attn", C, 3 * C),
                ("attn.c_proj", C, C),
                ("mlp.c_fc", C, 4 * C),
                ("mlp.c_proj", 4 * C, C),
            ):
                shapes[f"h.{number}.{name}.weight"] = (inputs, outputs)  # a Linear's, transposed
                shapes[f"h.{number}.{name}.bias"] = (outputs,)
        return shapes


@dataclass(frozen=True)
class GPT2:
    """A GPT-2 with these weights, by their names in the published file."""

    sizes: Sizes
    weights: Mapping[str, Tensor]

    def hidden(self, ids: Tensor, attention: Attention) -> Tensor:
        """Return (B, T, C), the last layer's output after its norm, for (B, T) ids."""
        x = self.weights["wte.weight"][ids]  # (B, T, C)
        x = x + self.weights["wpe.weight"][: ids.shape[1]]  # (B, T, C)
        for number in range(self.sizes.n_layer):
            x = x + attention(number, self._norm(f"h.{number}.ln_1", x))  # (B, T, C)
            y = self._linear(f"h.{number}.mlp.c_fc", self._norm(f"h.{number}.ln_2", x))
            y = F.gelu(y, approximate="tanh")  # (B, T, 4C)
            x = x + self._linear(f"h.{number}.mlp.c_proj", y)  # (B, T, C)
        return self._norm("ln_f", x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return (B, T, V) logits for (B, T, C). The head has the weights of the embedding."""
        return hidden @ self.weights["wte.weight"].T

    def attention(self, number: int, x: Tensor) -> Tensor:
        """Attend causally in a block, from (B, T, C) to (B, T, C), by PyTorch's own function."""
        B, T, C = x.shape
        heads = (B, T, self.sizes.n_head, self.sizes.head_dim)
        qkv = self._linear(f"h.{number}.attn.c_attn", x)  # (B, T, 3C)
        q, k, v = (x.view(heads).transpose(1, 2) for x in qkv.split(C, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, nh, T, hd)
        y = y.movedim(1, 2).flatten(2)  # (B, T, C)
        return self._linear(f"h.{number}.attn.c_proj", y)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)


@torch.no_grad()
def continue_text(model: GPT2, ids: list[int], count: int, attention: Attention) -> list[int]:
    """Return the ids with `count` more, each the most probable one after those before it."""
    for _ in range(count):
        hidden = model.hidden(torch.tensor([ids]), attention)  # (1, T, C)
        ids = [*ids, int(model.logits(hidden[0, -1]).argmax())]
    return ids
