"""Keep the weights of a trained model on the student's machine, so that the next command need not train it again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

_NAME = "weights"


@dataclass(frozen=True)
class KeptFacts:
    """setup: `recorded.setup_of` of that training. code: the digest of the attempt that learned. steps: how many."""

    setup: str
    code: str
    steps: int


def keep(path: Path, weights: Tensor, facts: KeptFacts) -> None:
    """Write the file, and make its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors.torch.save({_NAME: weights}, metadata={"facts": json.dumps(asdict(facts))}))


def kept(path: Path, setup: str) -> tuple[Tensor, KeptFacts] | None:
    """The weights and what is known of them; None where there are none, or none of this setup."""
    try:
        data = path.read_bytes()
        body = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["facts"]
        facts = KeptFacts(**json.loads(body))
        weights = safetensors.torch.load(data)[_NAME]
    except (OSError, ValueError, LookupError, TypeError, SafetensorError):
        return None
    return (weights, facts) if facts.setup == setup and weights.dim() == 1 else None
