"""A few random projections of a tensor.

They suffice to recognise the same values up to rounding, and reveal little else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

PROJECTIONS = 3
# More elements than any right answer has. This limits the time that a wrong answer costs the judge.
LARGEST = 1 << 20
# length -> how many sets of directions of at most this length are cached. The longest take 25 MB
# each, and 0.1 s to draw.
_CACHED = {1 << 14: 512, 1 << 16: 16, LARGEST: 3}
FLOOR = -1e3  # scores are within ±50: after a softmax, anything below this is the same as -inf
# Anything above this counts as inf: it is near the limit of float32, and sums of squares must not
# overflow.
CEILING = 1e30


@dataclass(frozen=True)
class Projection:
    """The projection of a tensor.

    Attributes:
        extremes: a short hash of the positions of NaN, values above CEILING and values below FLOOR,
            or "" if there are none.
        numbers: projections of the other values.
        norm: the Euclidean norm of the other values.
    """

    extremes: str
    numbers: tuple[float, ...]
    norm: float


def project(tensor: Tensor) -> Projection:
    """Return the projection of a tensor of any dtype.

    If the tensor is too large for any right answer, the projection has only its size.
    """
    if tensor.numel() > LARGEST:
        return Projection(f"{tensor.numel()} numbers", (0.0,) * PROJECTIONS, 0.0)
    values = tensor.double().flatten()
    ordinary = (values > FLOOR) & (values < CEILING)  # NaN is neither
    extremes = ""
    if not bool(ordinary.all()):
        marks = ordinary.char() + 2 * values.isnan().char() + 4 * (values >= CEILING).char()
        extremes = hashlib.sha256(bytes(marks.tolist())).hexdigest()[:8]
        values = torch.where(ordinary, values, torch.zeros_like(values))
    numbers = (values @ _directions(values.numel())).tolist()
    return Projection(
        extremes, tuple(map(_rounded, numbers)), _rounded(float(torch.linalg.vector_norm(values)))
    )


def with_extremes(tensor: Tensor) -> Tensor:
    """Return the tensor with values beyond FLOOR or CEILING replaced by infinities.

    A projection treats these values in the same way.
    """
    infinite = tensor.double().masked_fill(tensor <= FLOOR, -torch.inf)
    return infinite.masked_fill(tensor >= CEILING, torch.inf)


def _rounded(number: float) -> float:
    """Return the number rounded to six digits, or 0 if it is tiny.

    Machines add in different orders, but all should record the same numbers.
    """
    return 0.0 if abs(number) <= 1e-10 else float(f"{number:.6g}")


def _directions(length: int) -> Tensor:
    """Return (length, PROJECTIONS) fixed pseudo-random numbers, the same on every machine."""
    return next(cached(length) for longest, cached in _KEPT.items() if length <= longest)


def _draw_directions(length: int) -> Tensor:
    seed = int.from_bytes(hashlib.sha256(str(length).encode()).digest()[:4], "big")
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(length, PROJECTIONS, generator=generator, dtype=torch.float64)


_KEPT = {longest: lru_cache(maxsize=count)(_draw_directions) for longest, count in _CACHED.items()}
