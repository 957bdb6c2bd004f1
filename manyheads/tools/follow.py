"""Run an attempt on examples in a process of its own, and trace it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.loading import load
from ..box.traces import read_traced
from ..box.worker.answers import Reply, Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.explain import explain, is_undefined
from ..checks.sanitize import sanitize
from ..judge.stopped_parts import stopped_parts
from ..public.describe_exception import describe_exception
from ..submission import AttemptSource
from .example import Example
from .telling import most_telling
from .traced_call import trace_call


@dataclass(frozen=True)
class Followed:
    """The traced calls, in their order, with the examples that were shown. `ended`: why the attempt ended early, if it did."""

    shown: tuple[tuple[Example, Traced], ...]
    ended: str = ""


def follow(
    box: Box,
    limits: Limits,
    source: AttemptSource,
    wanted: Sequence[Example],
    crop: tuple[int, ...] = (),
    times: int = 1,
) -> Followed:
    """Trace each example in float32, or one in its place that the attempt gets wrong. `crop`, `times`: see TraceCall."""
    shown: list[tuple[Example, Traced]] = []
    at, connection = "while it was imported", None

    def ask(call: Call) -> Reply:
        assert connection is not None
        return connection.ask(call, limits.seconds_per_call)

    try:
        loaded = load(box, limits, source.load())
        connection = loaded.connection
        if loaded.raised is not None:
            own = sanitize(loaded.raised.message)
            return Followed((), f"{source.name} cannot be imported: it {explain(loaded.raised)}. Python says: {own}")
        for example in wanted:
            at = f"in {example.target}"
            telling = most_telling(example, ask)
            message = trace_call(telling, crop, times)
            traced = connection.ask_for(read_traced, message, limits.seconds_per_call)
            raised = traced.reply.raised
            if loaded.stopped and raised is not None and is_undefined(raised):
                return Followed(tuple(shown), stopped_parts(source, loaded.stopped, describe_exception))
            shown.append((telling, traced))
    except AttemptEnded as ended:
        return Followed(tuple(shown), f"{ended} That was {at}.")
    finally:
        if connection is not None:
            connection.close()
    return Followed(tuple(shown))
