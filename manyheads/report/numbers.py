"""A crop of a tensor as lines of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor


def crop_lines(crop: Tensor, whole: Sequence[int]) -> list[str]:
    """Rows of numbers, with "…" where the tensor continues. `whole`: the tensor's full shape."""
    table = crop.reshape(-1, crop.shape[-1]) if crop.dim() else crop.reshape(1, 1)
    ordinary = table[table.isfinite()]
    whole_numbers = bool((ordinary == ordinary.round()).all()) if table.is_floating_point() else True
    texts = [[_number(value, whole_numbers) for value in row] for row in table.tolist()]
    width = max((len(text) for row in texts for text in row), default=0)
    more = " …" if whole and whole[-1] > table.shape[1] else ""
    lines = [" ".join(f"{text:>{width}}" for text in row) + more for row in texts]
    if len(whole) > 2:
        lines.insert(0, f"[{', '.join('0' for _ in whole[:-2])}]")
    return [*lines, "…"] if len(whole) > 1 and whole[-2] > table.shape[0] else lines


def _number(value: float | bool, is_whole: bool) -> str:
    if isinstance(value, bool):
        return "True" if value else "·"
    if not math.isfinite(value):
        return str(value).replace("-", "−").replace("inf", "∞")
    return f"{value:.0f}" if is_whole else f"{value:.2f}"
