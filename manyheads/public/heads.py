"""The attention weights of the reference's heads in the recorded calls, for machines that have no reference."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..course import CourseError

_WEIGHTS, _SCORES = "weights ", "scores "  # before a call's key


@dataclass(frozen=True)
class Heads:
    """(nh, T, T) each, for the first sequence. `scores`: the scores before the softmax, None if none were found."""

    weights: Tensor
    scores: Tensor | None


def key_of(answer: Tensor) -> str:
    """The key of a recorded call: a hash of the reference's answer."""
    values = answer.float().contiguous()
    return hashlib.sha256(f"{tuple(values.shape)}".encode() + values.numpy().tobytes()).hexdigest()[:16]


def save(recorded: Mapping[str, Heads]) -> bytes:
    """The bytes of the file, which are the same for the same content. `recorded`: the heads by the call's key."""
    tensors = {_WEIGHTS + key: heads.weights for key, heads in recorded.items()}
    tensors |= {_SCORES + key: heads.scores for key, heads in recorded.items() if heads.scores is not None}
    return bytes(safetensors.torch.save({name: t.detach().clone() for name, t in tensors.items()}))


def read(path: Path) -> dict[str, Heads]:
    """Read the heads by the call's key; empty if the exercise has none. Raises CourseError."""
    if not path.exists():
        return {}
    try:
        tensors = safetensors.torch.load(path.read_bytes())
    except (OSError, ValueError, LookupError, SafetensorError) as error:
        raise CourseError(
            f"{path} cannot be read ({type(error).__name__}). Next: git checkout {path}, or as an instructor: "
            "course release"
        ) from error
    keys = [name.removeprefix(_WEIGHTS) for name in tensors if name.startswith(_WEIGHTS)]
    return {key: Heads(tensors[_WEIGHTS + key], tensors.get(_SCORES + key)) for key in keys}
