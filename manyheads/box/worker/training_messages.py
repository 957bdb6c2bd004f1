"""The messages with which a small language model is built, trained and asked to write."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .messages import Build


@dataclass(frozen=True)
class TrainPlan:
    """How a small language model is built and trained. seed: chooses the text that is read at each step."""

    vocabulary: int
    n_layer: int
    n_embd: int
    block_size: int
    batch: int
    steps: int
    rate: float  # the highest learning rate
    seed: int = 0
    draws: int = 0  # the seed of the initial weights


@dataclass(frozen=True)
class InitModel:
    """Build a language model with the module `attention` in each block, in place of an earlier model.

    text: (N,) uint8, the tokens to train on; held_out: the tokens to evaluate on. The answer is a Reply without outputs.
    """

    attention: Build
    plan: TrainPlan
    text: Tensor
    held_out: Tensor


@dataclass(frozen=True)
class TrainSteps:
    """Train for this many steps. The answer is a Reply whose output is the loss of each step."""

    steps: int


@dataclass(frozen=True)
class Evaluate:
    """Evaluate on the held-out text, each token predicted from those before it. The answer is a Reply with the loss."""


@dataclass(frozen=True)
class Generate:
    """Generate `count` tokens after the prompt. The answer is a Reply whose output they are."""

    prompt: Tensor
    count: int
    seed: int = 0


Training = InitModel | TrainSteps | Evaluate | Generate
