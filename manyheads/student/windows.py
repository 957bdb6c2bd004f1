"""Where a table of numbers stands within a larger one: known by the numbers alone, whatever they were multiplied by.

The larger table holds the products of all queries with all keys. These are of random numbers, so that each window of it
occurs once; a tile of scores is a window times some scale, hidden in places.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .bands import HIDDEN

LEAST = 3  # cells that are seen: fewer fit in many places
_ROUNDING = 1e-4
_EXPONENT = 1e-3  # the largest difference between exponents that are equal


class Box(NamedTuple):
    """The cells of a tile."""

    top: int
    left: int
    height: int
    width: int

    def of(self, table: Tensor) -> Tensor:
        """Return these cells of the whole table."""
        return table[self.top : self.top + self.height, self.left : self.left + self.width]


class Fit(NamedTuple):
    """A table of shares, exp(scale · products − reference), with one reference for each row; NaN where all are zero."""

    scale: float
    reference: Tensor


class Place(NamedTuple):
    """A window, and what its numbers are multiplied by."""

    box: Box
    factor: float


def place(table: Tensor, products: Tensor, factor: float | None = None) -> Place | None:
    """Return the window that this table is, times a positive factor; None if it is none. What reaches beyond the end is padding.

    factor: where it is known, a single cell is enough.
    """
    (rows, columns), (queries, keys) = table.shape, products.shape
    seen = is_seen(table)
    least = LEAST if factor is None else 1
    if int(seen.sum()) < least or rows >= 2 * queries or columns >= 2 * keys:
        return None
    padded = functional.pad(products, (0, columns - 1, 0, rows - 1))
    windows = padded.unfold(0, rows, 1).unfold(1, columns, 1) * seen  # (queries, keys, rows, columns)
    found = torch.where(seen, table.double(), 0.0)
    factors = (windows * found).sum((-2, -1)) / (windows * windows).sum((-2, -1)).clamp(min=1e-12)
    if factor is not None:
        factors = torch.full_like(factors, factor)
    apart = (found - factors[..., None, None] * windows).abs().amax((-2, -1))
    apart = torch.where((factors > 0) & ((windows != 0).sum((-2, -1)) >= least), apart, torch.inf)
    at = int(apart.argmin())
    if not float(apart.flatten()[at]) <= _ROUNDING * float(found.abs().max()):
        return None
    top, left = divmod(at, keys)
    return Place(Box(top, left, min(rows, queries - top), min(columns, keys - left)), float(factors.flatten()[at]))


def is_seen(scores: Tensor) -> Tensor:
    """Return which scores are not hidden."""
    return scores.isfinite() & (scores > HIDDEN)


def fit(shares: Tensor, products: Tensor, scale: float | None = None) -> Fit | None:
    """Return what these shares are the exponentials of; None if they are none. scale: where it is known, which few cells do not tell."""
    seen = shares > 0
    if not bool(seen.any()) or not bool((shares.isfinite() & (shares >= 0)).all()):
        return None
    exponents = torch.where(seen, shares.double().clamp(min=1e-300).log(), 0.0)
    counts = seen.sum(-1, keepdim=True).clamp(min=1)

    def centred(table: Tensor) -> Tensor:
        table = torch.where(seen, table, 0.0)
        return torch.where(seen, table - table.sum(-1, keepdim=True) / counts, 0.0)

    if scale is None:
        if int(seen.sum()) - int(seen.any(-1).sum()) < LEAST:
            return None
        inside = centred(products)
        scale = float((inside * centred(exponents)).sum() / (inside * inside).sum())
    rest = torch.where(seen, scale * products - exponents, 0.0)
    if abs(scale) < _EXPONENT or float(centred(rest).abs().max()) > _EXPONENT:
        return None
    reference = rest.sum(-1) / counts[:, 0]
    return Fit(scale, torch.where(seen.any(-1), reference, torch.nan))
