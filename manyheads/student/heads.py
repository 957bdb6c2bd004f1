"""Find and store attention heads: recorded ones of the reference, and those of a student's traced module."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker.answers import Step, Traced
from ..course import CourseError
from ..errors import restore
from .axes import Axes

# The attention of the reference's heads in the recorded calls, for machines that have no reference.

_WEIGHTS, _SCORES = "weights ", "scores "  # before a call's key
_BOXES, _TILED = "boxes ", "tiled "


@dataclass(frozen=True)
class Heads:
    """(nh, T, T) each, for the first sequence. `scores`: the scores before the softmax, None if none were found."""

    weights: Tensor
    scores: Tensor | None


@dataclass(frozen=True)
class Tiles:
    """The tiles in which the scores of the first head of the first sequence were computed, in the order of the visits.

    boxes: (n, 4), of each tile its first query and key, and how many it has of both. scores: (T, T), −∞ where none counts.
    """

    boxes: Tensor
    scores: Tensor


@dataclass(frozen=True)
class Recorded:
    """What is recorded of an exercise, by the call's key."""

    heads: Mapping[str, Heads] = field(default_factory=dict)
    tiles: Mapping[str, Tiles] = field(default_factory=dict)


def key_of(answer: Tensor) -> str:
    """Return the key of a recorded call: a hash of the reference's answer."""
    values = answer.float().contiguous()
    return hashlib.sha256(f"{tuple(values.shape)}".encode() + values.numpy().tobytes()).hexdigest()[:16]


def save(recorded: Recorded) -> bytes:
    """Return the bytes of the file, which are the same for the same content; none if nothing is recorded."""
    tensors = {_WEIGHTS + key: heads.weights for key, heads in recorded.heads.items()}
    tensors |= {_SCORES + key: heads.scores for key, heads in recorded.heads.items() if heads.scores is not None}
    tensors |= {_BOXES + key: tiles.boxes for key, tiles in recorded.tiles.items()}
    tensors |= {_TILED + key: tiles.scores for key, tiles in recorded.tiles.items()}
    return bytes(safetensors.torch.save({name: t.detach().clone() for name, t in tensors.items()})) if tensors else b""


def read(path: Path) -> Recorded:
    """Read the file of an exercise, which may have none. Raises CourseError."""
    if not path.exists():
        return Recorded()
    try:
        tensors = safetensors.torch.load(path.read_bytes())
    except (OSError, ValueError, LookupError, SafetensorError) as error:
        raise CourseError(f"{path} cannot be read ({type(error).__name__}). {restore(path)}") from error
    heads, tiles = ([name.removeprefix(of) for name in tensors if name.startswith(of)] for of in (_WEIGHTS, _BOXES))
    return Recorded(
        {key: Heads(tensors[_WEIGHTS + key], tensors.get(_SCORES + key)) for key in heads},
        {key: Tiles(tensors[_BOXES + key], tensors[_TILED + key]) for key in tiles if _TILED + key in tensors},
    )


# Find the attention weights of each head of a student's module among the operations of a traced call.
#
# Weights are recognised by their values, not by a name: a (T, T) or (T_q, T_k) table with non-negative rows that sum
# to one, including later changes of it. Scores are the first table whose softmax gives the weights. If there is no
# such table, the output of a softmax and the tables before it are used.

_ROUNDING = 1e-3


def heads_of(traced: Traced, axes: Axes) -> Heads | None:
    """Return the weights and scores that the call computed; None if no weights were found."""
    tokens = axes.sizes.get("T", 0)
    sides = axes.sizes.get("T_q", tokens), axes.sizes.get("T_k", tokens)
    return heads_at(traced, axes, sides) if min(sides) > 1 else None


def heads_at(traced: Traced, axes: Axes, sides: tuple[int, int], earlier: int = 0) -> Heads | None:
    """Return the weights and scores of these sides. `earlier`: how many calls with the same sides came before, in a sequence."""
    if sides[1] < 2:  # a single key has the weight 1, as many other tables have
        return None
    tables = list(_tables(traced, axes, sides, earlier))
    at = next((i for i, (_, table) in enumerate(tables) if _are_weights(table)), None)
    if at is None:
        at = next((i for i, (step, _) in enumerate(tables) if step.name.lower() == "softmax"), None)
    if at is None:
        return None
    same = [(i, table) for i, (_, table) in enumerate(tables) if table.shape == tables[at][1].shape]
    return Heads(same[-1][1], _scores([table for i, table in same if i < at], tables[at][1]))


def _scores(before: Sequence[Tensor], weights: Tensor) -> Tensor | None:
    """Return the first table whose softmax, over the keys or another axis, gives the weights; else the last table."""
    for table in before:
        for axis in (-1, -2, -3):
            if torch.allclose(table.softmax(axis), weights, atol=_ROUNDING):
                return table
    return before[-1] if before else None


def _tables(traced: Traced, axes: Axes, sides: tuple[int, int], earlier: int) -> Iterator[tuple[Step, Tensor]]:
    """Yield every step with an output of shape (…, *sides), with the tables of the first sequence's heads."""
    for place in dict.fromkeys(traced.order):
        step = traced.steps[place]
        whole = step.outputs[0].shape if step.outputs else ()
        if whole[-2:] != sides or not step.crops or not step.crops[0].is_floating_point():
            continue
        if any(crop.shape[-2:] != sides for crop in step.crops):
            continue
        table = _of_first_sequence(step, whole, axes, earlier)
        if table is not None:
            yield step, table


def _of_first_sequence(step: Step, whole: tuple[int, ...], axes: Axes, earlier: int) -> Tensor | None:
    batch, heads = axes.sizes.get("B", 1), axes.sizes.get("nh", 1)
    if len(whole) == 4:
        return step.crops[earlier] if whole[1] == heads and earlier < len(step.crops) else None
    if earlier:  # of a loop, too few runs are kept to tell one call from the next
        return None
    if len(whole) == 3 and whole[0] in (heads, batch * heads) and (whole[0] != batch or heads == 1):
        return step.crops[0][:heads]
    if len(whole) == 3 and whole[0] == batch:  # a loop over heads
        return torch.stack([crop[0] for crop in step.crops[:heads]])
    return torch.stack(step.crops[:heads]) if len(whole) == 2 else None  # a loop over sequences and heads


def _are_weights(table: Tensor) -> bool:
    return bool((table >= 0).all() and ((table.sum(-1) - 1).abs() < _ROUNDING).all())
