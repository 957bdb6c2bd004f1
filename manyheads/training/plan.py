"""The size of the model, how it is trained, and how an exercise's module is built for it."""

from __future__ import annotations

from ..box.worker.messages import Build, TrainPlan
from ..course.file import Trainable
from .text import TrainingText

C, NH, T = 64, 4, 64  # channels, heads, and the most tokens: the lesson's own small sizes
EVALUATE_EVERY = 50  # steps between two evaluations on held-out text


def plan_for(text: TrainingText, seed: int = 0, draws: int = 0) -> TrainPlan:
    """The plan by which every model is built and trained; only the seeds vary."""
    return TrainPlan(
        vocabulary=len(text.vocabulary), n_layer=2, n_embd=C, block_size=T, batch=32, steps=600, rate=1e-2,
        seed=seed, draws=draws,
    )  # fmt: skip


def attention_of(trainable: Trainable, dropout: float = 0.0) -> Build:
    """The module to build in each block. `dropout`: passed only if it is not 0."""
    sizes = {"C": C, "nh": NH, "T": T}
    arguments: dict[str, object] = {name: sizes[size] for name, size in trainable.arguments.items()}
    if dropout:
        arguments["dropout"] = dropout
    return Build(trainable.module, kwargs=arguments, training=True)
