"""Hold a wrong answer against what a misconception must look like, before a broken oracle alone
names it.

An oracle says that an answer is wrong, and not in which way. Rows that are missing and keys that
count twice break the same ones. So a misconception may say in the course's texts (`shows`) what its
answers have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

from .observe import ObservedReply

Direction = Literal["moved rows", "missing"]
SAME = 1e-5  # of the largest number: two rows are equal, or a number is 0


def without_other_directions(
    names: Mapping[int, str],
    observations: Mapping[int, ObservedReply],
    directions: Mapping[str, Direction],
) -> dict[int, str]:
    """Return the names by call, without those of misconceptions whose direction none of their calls
    shows.

    directions: by misconception, of those that have one.
    """
    confirmed: dict[int, str] = {}
    for name in dict.fromkeys(names.values()):
        calls = [call for call, candidate in names.items() if candidate == name]
        direction = directions.get(name)
        if direction is None or any(
            _SHOWS[direction](observations[call]) for call in calls if call in observations
        ):
            confirmed |= dict.fromkeys(calls, name)
    return confirmed


def _rows_are_moved(observed: ObservedReply) -> bool:
    """Return whether the answer has the rows of the right one, each once, in another order."""
    for actual, expected in _tables(observed):
        if actual.shape != expected.shape or actual.dim() < 2:
            return False
        rows, expected_rows = (table.reshape(-1, table.shape[-1]) for table in (actual, expected))
        near = torch.cdist(rows, expected_rows, p=float("inf")) <= SAME * float(
            expected_rows.abs().max()
        )
        if not (bool(near.any(0).all()) and bool(near.any(1).all())):
            return False
    return True


def _something_is_missing(observed: ObservedReply) -> bool:
    """Return whether numbers are missing, or 0 where they should not be, or no sum is larger and
    some are smaller.
    """
    for actual, expected in _tables(observed):
        if actual.numel() < expected.numel():
            return True
        if actual.shape != expected.shape:
            continue
        scale = float(expected.abs().max())
        if bool(((actual.abs() <= SAME * scale) & (expected.abs() > SAME * scale)).any()):
            return True
    # The last answer of several may be the logarithm of a sum: what is missing makes it smaller.
    tables = _tables(observed)
    if len(tables) < 2 or tables[-1][0].shape != tables[-1][1].shape:
        return False
    change = tables[-1][0] - tables[-1][1]
    scale = float(tables[-1][1].abs().max())
    return bool((change <= SAME * scale).all()) and bool((change < -SAME * scale).any())


def _tables(observed: ObservedReply) -> list[tuple[Tensor, Tensor]]:
    outputs = [output.tensor for output in observed.reply.outputs]
    pairs = zip(outputs, observed.expected_outputs, strict=False)
    return [(a.double(), b.double()) for a, b in pairs if a is not None and b is not None]


_SHOWS: Mapping[Direction, Callable[[ObservedReply], bool]] = {
    "moved rows": _rows_are_moved,
    "missing": _something_is_missing,
}
