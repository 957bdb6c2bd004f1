"""Random inputs that nobody can predict, the same for every attempt of a run."""

from __future__ import annotations

import hashlib
import hmac
import math
import random
from types import SimpleNamespace

import torch
from torch import Tensor


def input_seed(secret: bytes, *parts: str) -> int:
    """A 63-bit seed: HMAC-SHA256 of the parts under the course secret."""
    digest = hmac.new(secret, "\0".join(parts).encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Draw:
    """The random numbers of one check: float64 on the CPU."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Normally distributed numbers with standard deviation `scale`."""
        numbers: Tensor = torch.randn(*shape, generator=self._generator, dtype=torch.float64)
        return numbers * scale

    def weights(self, *shape: int) -> Tensor:
        """A weight (out, in) with standard deviation 1/√in, so that activations keep their scale."""
        return self(*shape, scale=1 / math.sqrt(shape[-1]))

    def sizes(self, **choices: tuple[int, int] | list[int]) -> SimpleNamespace:
        """Integers that differ pairwise: `draw.sizes(B=[5, 7], T=(9, 13))`.

        A tuple is a range with both ends included; a list contains the integers to choose from.
        """
        allowed = {
            name: each if isinstance(each, list) else range(each[0], each[1] + 1) for name, each in choices.items()
        }
        while True:
            picked = {name: self._random.choice(numbers) for name, numbers in allowed.items()}
            if len(set(picked.values())) == len(picked):
                return SimpleNamespace(**picked)

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self._random.randint(low, high)
