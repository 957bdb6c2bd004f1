"""The size of the model, how it is trained, and how an exercise's module is built for it."""

from __future__ import annotations

from ..box.worker.messages import Build
from ..box.worker.training_messages import TrainPlan
from ..course.file import AttentionModule
from .text import TrainingText

C, NH, T = 64, 4, 64  # channels, heads, and the most tokens: the lesson's own small sizes
LONG = 128  # the most tokens of a model that writes with a cache: twice as many learn half as much in the same time
EVALUATE_EVERY = 50  # steps between two evaluations on held-out text


def plan_for(text: TrainingText, seed: int = 0, draws: int = 0, context: int = T) -> TrainPlan:
    """The plan by which every model is built and trained; only the seeds and the context vary.

    context: the most tokens; of longer sequences fewer are read at once.
    """
    return TrainPlan(
        vocabulary=len(text.vocabulary), n_layer=2, n_embd=C, block_size=context, batch=32 * T // context, steps=600,
        rate=1e-2, seed=seed, draws=draws,
    )  # fmt: skip


def attention_of(trainable: AttentionModule, dropout: float = 0.0, context: int = T) -> Build:
    """The module to build in each block. `dropout`: passed only if it is not 0."""
    sizes = {"C": C, "nh": NH, "T": context}
    arguments: dict[str, object] = {name: sizes[size] for name, size in trainable.arguments.items()}
    if dropout:
        arguments["dropout"] = dropout
    return Build(trainable.module, kwargs=arguments, training=True)
