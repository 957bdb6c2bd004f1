"""The attention of the reference's heads in the recorded calls, for machines that have no reference."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..course import CourseError
from ..errors import restore

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
    """The key of a recorded call: a hash of the reference's answer."""
    values = answer.float().contiguous()
    return hashlib.sha256(f"{tuple(values.shape)}".encode() + values.numpy().tobytes()).hexdigest()[:16]


def save(recorded: Recorded) -> bytes:
    """The bytes of the file, which are the same for the same content; none if nothing is recorded."""
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
