"""A few random projections of a tensor: enough to recognise the same values again, to rounding, and for nothing more."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

PROJECTIONS = 4
LARGEST = 1 << 20  # numbers: more than any right answer has, and what a wrong one costs the judge is bounded
_KEPT = 1 << 14  # as large as the answers that checks ask for: of students' own sizes there is no end
FLOOR = -1e3  # scores are within ±50: anything below is as good as -inf after a softmax
CEILING = 1e30  # anything above is as good as inf: float32 ends soon after, and sums of squares must not overflow


@dataclass(frozen=True)
class Projection:
    """holes: where values are NaN, above CEILING or below FLOOR, as a short hash ("" for nowhere). The rest is projected."""

    holes: str
    numbers: tuple[float, ...]
    norm: float


def project(tensor: Tensor) -> Projection:
    """The projection of a tensor of any dtype; of one that is too large for any right answer, its size alone."""
    if tensor.numel() > LARGEST:
        return Projection(f"{tensor.numel()} numbers", (0.0,) * PROJECTIONS, 0.0)
    values = tensor.double().flatten()
    ordinary = (values > FLOOR) & (values < CEILING)  # NaN is neither
    holes = ""
    if not bool(ordinary.all()):
        marks = ordinary.char() + 2 * values.isnan().char() + 4 * (values >= CEILING).char()
        holes = hashlib.sha256(bytes(marks.tolist())).hexdigest()[:8]
        values = torch.where(ordinary, values, torch.zeros_like(values))
    numbers = (values @ _directions(values.numel())).tolist()
    return Projection(holes, tuple(map(_rounded, numbers)), _rounded(float(values.norm())))


def _rounded(number: float) -> float:
    """Six digits, and no noise around 0: machines add up in different orders, and all must record the same."""
    return 0.0 if abs(number) <= 1e-10 else float(f"{number:.6g}")


def _directions(length: int) -> Tensor:
    """(length, PROJECTIONS) fixed pseudo-random numbers, the same on every machine."""
    return _kept(length) if length <= _KEPT else _drawn(length)


@lru_cache(maxsize=512)
def _kept(length: int) -> Tensor:
    return _drawn(length)


def _drawn(length: int) -> Tensor:
    seed = int.from_bytes(hashlib.sha256(str(length).encode()).digest()[:4], "big")
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(length, PROJECTIONS, generator=generator, dtype=torch.float64)
