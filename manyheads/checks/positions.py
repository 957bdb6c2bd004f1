"""Compare the positions of numbers in an input and in the answer.

`assert_moved_from` is for functions that only move numbers. `changed_positions` serves metamorphic
relations: it compares the answers to an input and to the same input after an edit at one position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from .answer import Answer, plain
from .asserts import TOLERANCE, assert_matches, assert_shape, difference
from .hidden_check import CheckFailed

Index = tuple[int, ...]
MOST_LISTED = 4  # numbers of one axis in a sentence; "…" stands for the others
# The distance of an answer's number from the input's number that it is. An attempt may have
# computed in float32.
SAME_NUMBER = 1e-6


def assert_moved_from(
    x: Tensor, got: Answer, expected: Tensor, axes: Sequence[str], into: Sequence[str]
) -> None:
    """Assert that every number of the answer comes from the right place of x.

    A failure names the first wrong part of the answer by its origin: "head 0, position 1 should
    hold channels 0…5 of position 1 of sequence 0; yours holds channels 6…11 of position 0 of
    sequence 0". The values decide. Origins are looked up only if values are wrong, because among
    many random numbers some are neighbours in float32.

    Example: `assert_moved_from(x, attempt.split_heads(x, n_head), split_oracle(x, n_head),
    axes=("sequence", "position", "channel"), into=("", "head", "position", "number"))`

    Args:
        x: the input. All its numbers differ.
        got: an answer of the attempt.
        expected: the numbers of x in their right order.
        axes: the name of each axis of x.
        into: the name of each axis of the answer. An axis with the name "" is not mentioned.
    """
    assert_shape(got, expected.shape)
    if difference(got.output, expected) <= TOLERANCE:
        return
    rows = zip(got.output.reshape(-1, expected.shape[-1]), expected.flatten(0, -2), strict=True)
    for row, (actual_row, expected_row) in enumerate(rows):
        leading = torch.unravel_index(torch.tensor(row), expected.shape[:-1])
        for run, sources in _runs(expected_row, x):
            if _origins(actual_row[run], x) != sources:
                label = _part_in_words(into, [int(i) for i in leading], run, expected.shape[-1])
                yours = _in_words(axes, _origins(actual_row[run], x))
                raise CheckFailed(
                    f"{label} should hold {_in_words(axes, sources)}; yours holds {yours}"
                )
    assert_matches(got, expected)


def _runs(row: Tensor, x: Tensor) -> Iterator[tuple[slice, list[Index]]]:
    """Yield the parts of a row that come from one row of x, each with the origins."""
    start = 0
    for _, group in groupby(_origins(row, x), key=lambda source: source[:-1]):
        sources = list(group)
        yield slice(start, start + len(sources)), sources
        start += len(sources)


def _origins(numbers: Tensor, x: Tensor) -> list[Index]:
    """Return the index in x of each number. Returns [] if a number is not in x."""
    distances = (numbers[:, None] - x.flatten()).abs().nan_to_num(torch.inf)
    distance, nearest = distances.min(dim=1)
    if distance.max() > SAME_NUMBER:
        return []
    return [tuple(map(int, torch.unravel_index(i, x.shape))) for i in nearest]


def _part_in_words(names: Sequence[str], leading: Sequence[int], run: slice, width: int) -> str:
    """Return a part of an answer in words, such as "position 3, channels 6…11"."""
    words = [f"{name} {i}" for name, i in zip(names, leading, strict=False) if name]
    if run.stop - run.start < width:
        words.append(_numbered(names[-1], range(run.start, run.stop)))
    return ", ".join(words)


def _in_words(axes: Sequence[str], indices: Sequence[Index]) -> str:
    """Return indices of x in words, such as "channels 4…7 of position 0"."""
    if not indices:
        return "numbers that stand nowhere in the input"
    columns = zip(axes, zip(*indices, strict=True), strict=True)
    words = [_numbered(axis, list(dict.fromkeys(numbers))) for axis, numbers in columns]
    return " of ".join(reversed(words))


def _numbered(axis: str, numbers: Sequence[int]) -> str:
    """Return the indices of one axis in words: "channel 4", "channels 4…7", "channels 1, 5"."""
    if len(numbers) == 1:
        return f"{axis} {numbers[0]}"
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{axis}s {numbers[0]}…{numbers[-1]}"
    listed = ", ".join(map(str, numbers[:MOST_LISTED]))
    return f"{axis}s {listed}{', …' if len(numbers) > MOST_LISTED else ''}"


def changed_positions(
    original: Answer | Tensor,
    edited: Answer | Tensor,
    axes: int | Sequence[int],
    tolerance: float = 0,
) -> list[Any]:
    """Return the positions at which two answers differ.

    It states a metamorphic relation: if x is edited at one position, these are the positions that
    depend on it.

    Example: `edited[:, t:] += 1`, then
    `later = changed_positions(attempt.attend(x), attempt.attend(edited), axes=1, tolerance=1e-5)`
    and `expect(min(later) >= t, …)`.

    Args:
        original: the answer to an input.
        edited: the answer to the same input after an edit.
        axes: the axes that make up a position. With one axis a position is a number, with several
            it is a tuple. All numbers along the other axes belong to the position.
        tolerance: as a fraction of the largest original number; a smaller difference is none.
    """
    assert_shape(edited, original.shape)
    a, b = plain(original), plain(edited)
    differs = (a - b).abs() > tolerance * a.abs().max() if tolerance else a != b
    position_axes = {axis % a.dim() for axis in ([axes] if isinstance(axes, int) else axes)}
    for axis in reversed(range(a.dim())):
        if axis not in position_axes:
            differs = differs.any(dim=axis)
    indices = differs.nonzero().tolist()
    return [i for (i,) in indices] if isinstance(axes, int) else [tuple(i) for i in indices]
