"""Test whether a wrong answer has the property of a misconception that a violated oracle names.

An oracle shows that an answer is wrong, but not in which way: missing rows and keys that count
twice violate the same oracles. So the course's texts may declare a property that all answers with a
misconception have (`shows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

from .observe import ObservedReply

Direction = Literal["moved rows", "missing"]
SAME = 1e-5  # relative to the largest number: two rows are equal, or a number is 0


def without_other_directions(
    names: Mapping[int, str],
    observations: Mapping[int, ObservedReply],
    directions: Mapping[str, Direction],
) -> dict[int, str]:
    """Return the names by call, without misconceptions whose property none of their calls has.

    Args:
        names: the misconceptions, by call.
        observations: the replies, by call.
        directions: the property of each misconception that has one.
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
    """Return whether the answer has the rows of the right answer in any order."""
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
    """Return whether some numbers are missing or 0, or some sums too small and none too large."""
    for actual, expected in _tables(observed):
        if actual.numel() < expected.numel():
            return True
        if actual.shape != expected.shape:
            continue
        scale = float(expected.abs().max())
        if bool(((actual.abs() <= SAME * scale) & (expected.abs() > SAME * scale)).any()):
            return True
    # The last of several outputs may be the logarithm of a sum, too small if a term is missing.
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
