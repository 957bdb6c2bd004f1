"""The process of one attempt: import the student's source, then answer calls until the judge closes the connection."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import sys
import types
from collections.abc import Mapping

from . import wire
from .answers import STOPPED_LIMIT, Reply, Traced
from .execute import execute, raised_by
from .messages import Batch, Call, Load, Part, TraceCall, Training
from .program import Program, lines_of
from .tracing import trace
from .training import Trainer

MODULE = "attempt"  # the name under which the student's module stands in sys.modules


def serve(connection: wire.Stream) -> None:
    """Answer until the judge closes the connection. Student code runs in this function and nowhere else."""
    attempt = _Attempt()
    while (message := wire.receive(connection)) is not None:
        if isinstance(message, Batch):  # answered together, which wakes the judge once
            answers = b"".join([attempt.answer(wire.receive(connection)) for _ in range(message.count)])
            connection.sendall(wire.LENGTH.pack(len(answers)) + answers)
        else:
            connection.sendall(attempt.answer(message))


class _Attempt:
    """The student's module, once it is loaded."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._namespace: Mapping[str, object] = {}
        self._name = ""
        self._trainer = Trainer()

    def answer(self, message: object) -> bytes:
        """Return the answer to one message. Raises TypeError for anything that is not a message for an attempt."""
        reply: Reply | Traced
        if isinstance(message, Load):
            self._name = message.name
            self._program, self._namespace, reply = import_source(message)
        elif isinstance(message, Part):
            reply = self._run(message.number)
        elif isinstance(message, Call):
            reply = execute(self._namespace, message, self._name)
        elif isinstance(message, TraceCall):
            reply = trace(self._namespace, message, self._name)
        elif isinstance(message, Training):
            reply = self._trainer.answer(self._namespace, message, self._name)
        else:
            raise TypeError(f"not a message for an attempt: {type(message).__name__}")
        return wire.encode(reply)

    def _run(self, number: int) -> Reply:
        """Run one part of a source that was loaded stepwise."""
        assert self._program is not None
        raised = self._program.run(number)
        return Reply(stopped=(raised,) if raised else ())


def import_source(load: Load) -> tuple[Program | None, Mapping[str, object], Reply]:
    """Run the source as a module, part by part. The reply carries the exceptions of the parts that raised one.

    A stepwise load runs none of them. No program: the text cannot be parsed, which the reply says.
    """
    module = types.ModuleType(MODULE)
    module.__file__ = load.name
    sys.modules[MODULE] = module
    if load.cells:
        vars(module).update(get_ipython=_nothing, display=_nothing)
    lines = lines_of(load.source)
    linecache.cache[load.name] = (len(load.source), None, lines, load.name)
    try:
        program = Program(load, module)
    except SyntaxError as error:
        return None, vars(module), Reply(raised=raised_by(error, "load", load.name))
    if load.stepwise:
        return program, vars(module), Reply(parts=program.lines)
    stopped = [program.run(number) for number in range(len(program.lines)) if number not in load.skipped]
    return program, vars(module), Reply(stopped=tuple(raised for raised in stopped if raised)[:STOPPED_LIMIT])


def _nothing(*args: object, **kwargs: object) -> None:
    """Do nothing in place of a notebook's own names: there is no shell to ask, and nobody to look."""


def silence() -> None:
    """Discard all output, and read nothing from standard input."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    for written in (sys.stdout, sys.stderr):  # a print costs nothing, also of what no encoding can write
        if isinstance(written, io.TextIOWrapper):
            with contextlib.suppress(OSError):  # where it was not the standard output, and is closed
                written.reconfigure(errors="backslashreplace")


def hide_descriptors(*descriptors: int) -> tuple[int, ...]:
    """Move these to numbers that student code is unlikely to close by accident, and close all others but 0 to 2."""
    first, after = 64, 64 + len(descriptors)
    for number, descriptor in enumerate([_outside(descriptor, first, after) for descriptor in descriptors], first):
        os.dup2(descriptor, number, inheritable=False)
    os.closerange(3, first)
    os.closerange(after, 1024)
    return tuple(range(first, after))


def _outside(descriptor: int, first: int, after: int) -> int:
    """Return the descriptor, or a copy of it whose number is not in this range."""
    while first <= descriptor < after:
        descriptor = os.dup(descriptor)
    return descriptor
