"""Compare a recording on disk with a new one: numbers to rounding, everything else exactly.

torch adds in another order on another processor, so two machines record floats that differ in their last bits. Such
recordings are equivalent, although a comparison of bytes would call one of them stale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

TENSORS = 2e-6  # relative to the largest number of a tensor, or to 1 if all are smaller: float32 has seven digits
FIGURES = 1e-4  # the same for a list of numbers in the metadata: sums of many rounded numbers, written with six digits


def in_step(there: bytes, made: bytes) -> bool:
    """Whether two safetensors files are equivalent.

    Args:
        there: the file on disk.
        made: the file as it would be written now.

    Returns:
        True where names, dtypes, shapes, integers and text are equal, and floats are equal to rounding. NaN is equal
        to NaN, and an infinity to the same infinity, never to a finite number. False where `there` cannot be read.
    """
    if there == made:
        return True
    try:
        before, after = safetensors.torch.load(there), safetensors.torch.load(made)
        texts, new_texts = _metadata(there), _metadata(made)
    except (ValueError, LookupError, SafetensorError):
        return False
    return (
        before.keys() == after.keys()
        and all(same_numbers(before[name], after[name]) for name in after)
        and _same_values(texts, new_texts)
    )


def same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same numbers: floats to rounding, others exactly."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    finite = a.isfinite() & b.isfinite()
    if not bool((finite | (a == b) | (a.isnan() & b.isnan())).all()):
        return False
    mine, other = a[finite], b[finite]
    largest = max(1.0, float(mine.abs().max())) if mine.numel() else 1.0
    return bool(((mine - other).abs() <= TENSORS * largest).all())


def _metadata(data: bytes) -> object:
    """The metadata of a file. Values that are JSON are parsed."""
    length = int.from_bytes(data[:8], "little")
    return {key: _parsed(text) for key, text in json.loads(data[8 : 8 + length]).get("__metadata__", {}).items()}


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _same_values(a: object, b: object, largest: float = 1.0) -> bool:
    """Whether two parsed values are equal. largest: the largest number of the list that they stand in."""
    if isinstance(a, float) and isinstance(b, int | float) and not isinstance(b, bool):
        return _same_figure(a, float(b), largest)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same_values(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        largest = max((abs(each) for each in a if isinstance(each, float) and math.isfinite(each)), default=1.0)
        return len(a) == len(b) and all(_same_values(x, y, largest) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def _same_figure(a: float, b: float, largest: float) -> bool:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= FIGURES * max(1.0, largest, abs(a))
