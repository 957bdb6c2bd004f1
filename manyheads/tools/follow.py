"""Run an attempt on examples in a process of its own, and trace it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.traces import read_traced
from ..box.worker.answers import Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Load, TraceCall
from ..checks.cast import cast
from ..checks.explain import explain
from ..checks.sanitize import sanitize
from ..submission import AttemptSource
from .calls import Example


@dataclass(frozen=True)
class Followed:
    """The traced calls, in their order. `ended`: one sentence that says why the attempt ended early, if it did."""

    traced: tuple[Traced, ...]
    ended: str = ""


def follow(
    box: Box,
    limits: Limits,
    source: AttemptSource,
    wanted: Sequence[Example],
    crop: tuple[int, ...] = (),
    times: int = 1,
) -> Followed:
    """Trace each example in float32. `crop` and `times` are those of TraceCall."""
    traced: list[Traced] = []
    connection = box.attempt(limits)
    at = "while it was imported"
    try:
        load = Load(source.source, source.name, source.cells)
        raised = connection.ask(load, box.start_seconds + limits.seconds_per_call).raised
        if raised is not None:
            own = sanitize(raised.message)
            return Followed((), f"{source.name} cannot be imported: it {explain(raised)}. Python says: {own}")
        for example in wanted:
            at = f"in {example.target}"
            message = TraceCall(cast(example.call, "float32"), crop, times)
            traced.append(connection.ask_for(read_traced, message, limits.seconds_per_call))
    except AttemptEnded as ended:
        return Followed(tuple(traced), f"{ended} That was {at}.")
    finally:
        connection.close()
    return Followed(tuple(traced))
