"""The text to train on, character by character."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

PATH = Path(__file__).with_name("alice.txt")
HELD_OUT = 0.1  # the share of the text, at its end
REMARK = "#"  # starts a line about the text


@dataclass(frozen=True)
class TrainingText:
    """A text as numbers. `vocabulary`: the characters, by number."""

    vocabulary: str
    ids: Tensor  # (N,) uint8

    @property
    def training_part(self) -> Tensor:
        """The part to train on."""
        return self.ids[: -self._held_out]

    @property
    def held_out(self) -> Tensor:
        """The part to evaluate on."""
        return self.ids[-self._held_out :]

    def encode(self, text: str) -> Tensor:
        """(N,) uint8. Raises ValueError if a character is not in the vocabulary."""
        return torch.tensor([self.vocabulary.index(character) for character in text], dtype=torch.uint8)

    def decode(self, ids: Tensor) -> str:
        """The text of these numbers."""
        return "".join(self.vocabulary[i] for i in ids.tolist())

    @property
    def _held_out(self) -> int:
        return int(len(self.ids) * HELD_OUT)


def read_text(path: Path = PATH) -> TrainingText:
    """Read the text of this file, without the lines about it."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(REMARK))
    vocabulary = "".join(sorted(set(text)))
    places = {character: place for place, character in enumerate(vocabulary)}
    return TrainingText(vocabulary, torch.tensor([places[c] for c in text], dtype=torch.uint8))
