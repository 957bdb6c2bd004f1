"""A helper that runs one function of an attempt in a box; and the fixture `sides`."""

from typing import Any

from manyheads.box.connection import Box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from tests.diagnosis.both_sides import sides  # noqa: F401
from tests.make import replies


def value_of(
    box: Box, limits: Limits, source: str, *args: object, name: str = "f", seconds: float = 20.0
) -> Any:
    """Return the number or numbers that a new attempt's function returns, or the exception's name.

    Args:
        source: the attempt; or the body of `f()` alone, if it is indented.
    """
    if source.startswith("    "):
        source = f"import os, sys, time, torch\n\ndef f():\n{source}\n"
    (reply,) = replies(box, limits, source, Call(name, args), seconds=seconds)
    if reply.raised is not None:
        return reply.raised.type
    assert reply.outputs[0].tensor is not None
    return reply.outputs[0].tensor.tolist()
