"""Train a language model with a student's attention in a process of its own, and keep its weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.loading import Loaded, load
from ..box.worker.form import Form
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call
from ..box.worker.training_messages import TrainPlan
from ..checks.explain import is_undefined
from ..checks.sanitize import kind_name, sanitize
from ..submission import AttemptSource
from .train_model import TrainingRun, TrainingStopped, exception_sentence
from .training_plan import TrainingText

# Train a language model with a student's attention, in a process of its own.

SECONDS = 3600.0  # for the whole training; each message has the course's limit for a call
_TRIAL = (2, 5)  # the sequences and tokens of a trial call


@contextmanager
def own_training_run(
    box: Box,
    limits: Limits,
    source: AttemptSource,
    attention: Build,
    text: TrainingText,
    plan: TrainPlan,
    form: Form | None = None,
) -> Iterator[TrainingRun]:
    """Open a model that is ready to train, with the attempt's module in each block. Raises TrainingStopped.

    form: of what the module returns, its output first; None: the output alone.
    """
    loaded = _loaded(box, replace(limits, seconds_per_attempt=SECONDS), source)
    connection, seconds = loaded.connection, limits.seconds_per_call
    try:
        _try(loaded, source.name, attention, plan, seconds, form)
        run = TrainingRun(lambda message: connection.ask(message, seconds), text, plan)
        run.build(attention)
        yield run
    finally:
        connection.close()


def _loaded(box: Box, limits: Limits, source: AttemptSource) -> Loaded:
    where = f"while {sanitize(source.name)} was imported"
    try:
        loaded = load(box, limits, source.load())
    except AttemptEnded as ended:
        raise TrainingStopped(f"{ended} That was {where}.") from None
    if loaded.raised is not None:
        loaded.connection.close()
        raise TrainingStopped(exception_sentence(loaded.raised, where))
    return loaded


def _try(loaded: Loaded, file: str, attention: Build, plan: TrainPlan, seconds: float, form: Form | None) -> None:
    """Call the module once, so that a wrong shape is reported as such, not as an error of the model around it."""
    shape = (*_TRIAL, plan.n_embd)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    try:
        reply = loaded.connection.ask(
            Call(replace(attention, training=False), args=(x,), dtype="float32", returns=form), seconds
        )
    except AttemptEnded as ended:
        raise TrainingStopped(f"{ended} That was in {attention.target}.") from None
    if reply.raised is not None:
        stopped = next((part.raised for part in loaded.stopped if part.raised), None)
        if stopped is not None and is_undefined(reply.raised):
            raise TrainingStopped(exception_sentence(stopped, f"while {sanitize(file)} was imported"))
        raise TrainingStopped(exception_sentence(reply.raised, f"in {attention.target}"))
    tensor = reply.outputs[0].tensor if reply.outputs else None
    if tensor is None:
        kind = kind_name(reply.outputs[0].came) if reply.outputs else "nothing"
        asked = "a tensor (B, T, C)" if form is None else f"a pair ({', '.join(form.names)})"
        raise TrainingStopped(f"{attention.target} returns {kind}; {asked} is asked.")
    if tensor.shape != shape:
        raise TrainingStopped(
            f"{attention.target} returns the shape {tuple(tensor.shape)}; (B, T, C) = {shape} is asked."
        )
