"""Say what is trained: the size of the model, how an exercise's module is built for it, the text, and the curve that comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from ..box.worker.messages import Build
from ..box.worker.training_messages import TrainPlan
from ..course.file import Trainable

# A training curve.

RECENT = 50  # how many steps a loss is averaged over, because it varies from batch to batch


@dataclass(frozen=True)
class Curve:
    """losses: the training loss before each step. held_out: the loss on held-out text, by number of steps."""

    losses: tuple[float, ...]
    held_out: Mapping[int, float]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.losses)

    def recent(self, step: int | None = None) -> float:
        """Return the training loss, averaged over the last steps before this one, by default before the end."""
        end = self.steps if step is None else step
        return fmean(self.losses[max(0, end - RECENT) : end])

    def until(self, step: int) -> Curve:
        """Return the curve up to this step."""
        return Curve(self.losses[:step], {at: loss for at, loss in self.held_out.items() if at <= step})


# The text to train on, character by character.

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
        """Return (N,) uint8. Raises ValueError if a character is not in the vocabulary."""
        return torch.tensor([self.vocabulary.index(character) for character in text], dtype=torch.uint8)

    def decode(self, ids: Tensor) -> str:
        """Return the text of these numbers."""
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


# The size of the model, how it is trained, and how an exercise's module is built for it.

C, NH, T = 64, 4, 64  # channels, heads, and the most tokens: the lesson's own small sizes
LONG = 128  # the most tokens of a model that writes with a cache: twice as many learn half as much in the same time
EVALUATE_EVERY = 50  # steps between two evaluations on held-out text


def plan_for(text: TrainingText, seed: int = 0, draws: int = 0, context: int = T) -> TrainPlan:
    """Return the plan by which every model is built and trained; only the seeds and the context vary.

    context: the most tokens; of longer sequences fewer are read at once.
    """
    return TrainPlan(
        vocabulary=len(text.vocabulary), n_layer=2, n_embd=C, block_size=context, batch=32 * T // context, steps=600,
        rate=1e-2, seed=seed, draws=draws,
    )  # fmt: skip


def attention_of(trainable: Trainable, dropout: float = 0.0, context: int = T) -> Build:
    """Return the module to build in each block. `dropout`: passed only if it is not 0."""
    sizes = {"C": C, "nh": NH, "T": context}
    arguments: dict[str, object] = {name: sizes[size] for name, size in trainable.arguments.items()}
    if dropout:
        arguments["dropout"] = dropout
    return Build(trainable.module, kwargs=arguments, training=True)
