"""How large the model is, how it is trained, and how an exercise's module is made for it."""

from __future__ import annotations

from ..box.worker.messages import Build, TrainPlan
from ..course.file import Trainable
from .text import TrainingText

C, NH, T = 64, 4, 64  # channels, heads, and the most tokens: the lesson's own small sizes
EXAMINE_EVERY = 50  # steps


def plan_for(text: TrainingText, seed: int = 0, draws: int = 0) -> TrainPlan:
    """The one way in which every model is made and trained, but for its seeds."""
    return TrainPlan(
        vocabulary=len(text.vocabulary), n_layer=2, n_embd=C, block_size=T, batch=32, steps=600, rate=1e-2,
        seed=seed, draws=draws,
    )  # fmt: skip


def attention_of(trainable: Trainable, dropout: float = 0.0) -> Build:
    """What to build in each block. `dropout`: given only where it is not 0."""
    sizes = {"C": C, "nh": NH, "T": T}
    arguments: dict[str, object] = {name: sizes[size] for name, size in trainable.arguments.items()}
    if dropout:
        arguments["dropout"] = dropout
    return Build(trainable.module, kwargs=arguments, training=True)
