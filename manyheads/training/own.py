"""A student's own attention in a language model, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from ..box.connection import AttemptEnded, Connection
from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, Load, TrainPlan
from ..checks.sanitize import kind_name, sanitize
from ..submission import AttemptSource
from .study import Stopped, Study, told
from .text import TrainingText

SECONDS = 3600.0  # for all of it; for each question there is the course's limit for a call
_TRIAL = (2, 5)  # sequences and tokens of a first call


@contextmanager
def own_study(
    box: Box, limits: Limits, source: AttemptSource, attention: Build, text: TrainingText, plan: TrainPlan
) -> Iterator[Study]:
    """A model that is ready to learn, with the attempt's module in each block. Raises Stopped."""
    connection = box.attempt(replace(limits, seconds_per_attempt=SECONDS))
    seconds = limits.seconds_per_call
    try:
        _load(connection, source, box.start_seconds + seconds)
        _try(connection, attention, plan, seconds)
        study = Study(lambda message: connection.ask(message, seconds), text, plan)
        study.prepare(attention)
        yield study
    finally:
        connection.close()


def _load(connection: Connection, source: AttemptSource, seconds: float) -> None:
    try:
        raised = connection.ask(Load(source.source, source.name), seconds).raised
    except AttemptEnded as ended:
        raise Stopped(f"{ended} That was while {sanitize(source.name)} was imported.") from None
    if raised is not None:
        raise Stopped(told(raised, f"while {sanitize(source.name)} was imported"))


def _try(connection: Connection, attention: Build, plan: TrainPlan, seconds: float) -> None:
    """One call, so that a wrong shape is told as such, and not as an error of the model around it."""
    shape = (*_TRIAL, plan.n_embd)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    try:
        reply = connection.ask(Call(replace(attention, training=False), args=(x,), dtype="float32"), seconds)
    except AttemptEnded as ended:
        raise Stopped(f"{ended} That was in {attention.target}.") from None
    if reply.raised is not None:
        raise Stopped(told(reply.raised, f"in {attention.target}"))
    tensor = reply.outputs[0].tensor if reply.outputs else None
    if tensor is None:
        kind = kind_name(reply.outputs[0].kind) if reply.outputs else "nothing"
        raise Stopped(f"{attention.target} returns {kind}; a tensor (B, T, C) is asked.")
    if tensor.shape != shape:
        raise Stopped(f"{attention.target} returns the shape {tuple(tensor.shape)}; (B, T, C) = {shape} is asked.")
