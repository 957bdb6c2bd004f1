"""Random inputs that nobody can predict, the same for every attempt of a run."""

from __future__ import annotations

import hashlib
import hmac
import math
import random
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor


def input_seed(secret: bytes, *labels: str) -> int:
    """Return a 63-bit seed: HMAC-SHA256 of the parts under the course secret."""
    digest = hmac.new(secret, "\0".join(labels).encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Drawn(NamedTuple):
    """A tensor that was drawn, so briefly that it can be drawn again: the `place`-th of a seed,
    flat.

    length: of its numbers. scale: their standard deviation.
    """

    seed: int
    position: int
    length: int
    scale: float

    def numbers(self) -> Tensor:
        """Return the (length,) numbers in float64: the same on every processor, with every version
        of torch.

        Each is the sum of four whole numbers of 32 bits, taken from a hash (SHAKE-128). So the
        numbers are bell-shaped, and none is larger than 2√3 standard deviations. float32 holds each
        of them, as files store them and attempts may ask.
        """
        return _numbers(self).clone()  # a check may change them


@lru_cache(maxsize=2048)  # every attempt of a run gets the same ones
def _numbers(drawn: Drawn) -> Tensor:
    if not drawn.length:
        return torch.zeros(0, dtype=torch.float64)
    digest = hashlib.shake_128(f"{drawn.seed} {drawn.position}".encode()).digest(16 * drawn.length)
    summands = torch.frombuffer(bytearray(digest), dtype=torch.int32).view(-1, 4)
    return (summands.sum(1).double() * (math.sqrt(3) / 2**32) * drawn.scale).float().double()


class Draw:
    """The random numbers of one check: float64 on the CPU."""

    def __init__(self, seed: int, drawn: list[Drawn] | None = None) -> None:
        """Begin with a seed. drawn: a list to which everything that is drawn is added."""
        self._seed, self._place = seed, 0
        self._random = random.Random(seed)
        self._drawn = [] if drawn is None else drawn

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Return bell-shaped numbers of this shape, with mean 0 and standard deviation `scale`."""
        drawn = Drawn(self._seed, self._place, math.prod(shape), scale)
        self._drawn.append(drawn)
        self._place += 1
        return drawn.numbers().view(shape)

    def weights(self, *shape: int) -> Tensor:
        """Return a weight (out, in) with standard deviation 1/√in, so that activations keep their
        scale.
        """
        return self(*shape, scale=1 / math.sqrt(shape[-1]))

    def sizes(self, **choices: tuple[int, int] | list[int]) -> SimpleNamespace:
        """Integers that differ pairwise: `draw.sizes(B=[5, 7], T=(9, 13))`.

        A tuple is a range with both ends included; a list contains the integers to choose from.
        """
        allowed = {
            name: choice if isinstance(choice, list) else range(choice[0], choice[1] + 1)
            for name, choice in choices.items()
        }
        while True:
            picked = {name: self._random.choice(numbers) for name, numbers in allowed.items()}
            if len(set(picked.values())) == len(picked):
                return SimpleNamespace(**picked)

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return self._random.randint(low, high)
