"""The process of one attempt: import the student's source, then answer calls until the judge closes the connection."""

from __future__ import annotations
import __future__

import functools
import io
import linecache
import operator
import os
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace

from . import wire
from .answers import STOPPED_LIMIT, Raised, Reply, Traced
from .execute import execute, raised_by
from .measuring import measure
from .messages import Batch, Call, Load, Measure, TraceCall
from .printed import redirected
from .tracing import trace
from .training import Trainer
from .training_messages import Training

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
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
        self._namespace: Mapping[str, object] = {}
        self._name = ""
        self._trainer = Trainer()

    def answer(self, message: object) -> bytes:
        """The answer to one message. Raises TypeError for anything that is not a message for an attempt."""
        reply: Reply | Traced
        if isinstance(message, Load):
            self._name = message.name
            self._namespace, reply = import_source(message)
        elif isinstance(message, Call):
            reply = execute(self._namespace, message, self._name)
        elif isinstance(message, TraceCall):
            reply = trace(self._namespace, message, self._name)
        elif isinstance(message, Measure):
            reply = measure(self._namespace, message, self._name)
        elif isinstance(message, Training):
            reply = self._trainer.answer(self._namespace, message, self._name)
        else:
            raise TypeError(f"not a message for an attempt: {type(message).__name__}")
        return wire.encode(reply)


def import_source(load: Load) -> tuple[Mapping[str, object], Reply]:
    """Run the source as a module. The reply carries its exception, if it raised one."""
    module = types.ModuleType(MODULE)
    module.__file__ = load.name
    sys.modules[MODULE] = module
    if load.cells:
        vars(module).update(get_ipython=_nothing, display=_nothing)
    lines = _lines(load.source)
    linecache.cache[load.name] = (len(load.source), None, lines, load.name)
    with redirected(load.prints) as printed:
        reply = _run(load, module)
    return vars(module), replace(reply, printed=printed.text) if printed else reply


def _nothing(*args: object, **kwargs: object) -> None:
    """What a notebook's own names do here: there is no shell to ask, and nobody to look."""


def _run(load: Load, module: types.ModuleType) -> Reply:
    stopped: list[Raised] = []
    flags = 0  # of `from __future__ import …`, which in Jupyter holds for the cells below it, too
    for code in _cells(load):
        try:
            compiled = _compiled(code, load.name, flags)
            flags |= compiled.co_flags & _FUTURE
            exec(compiled, vars(module))
        except BaseException as error:  # SystemExit during the import is an answer too
            raised = raised_by(error, "load", load.name)
            if not load.cells or not isinstance(error, Exception):
                return Reply(raised=raised)
            stopped.append(raised)
    return Reply(stopped=tuple(stopped[:STOPPED_LIMIT]))


def _compiled(code: str, name: str, flags: int) -> types.CodeType:
    """Raises SyntaxError, also where Python gives up on the depth and calls that a recursion, or a lack of memory."""
    try:
        compiled: types.CodeType = compile(code, name, "exec", flags=flags, dont_inherit=True)
    except (RecursionError, MemoryError):
        raise SyntaxError("too many nested expressions") from None
    return compiled


def _cells(load: Load) -> Iterator[str]:
    """What is run by itself: each cell of a notebook, below as many blank lines as stand above it; otherwise the file."""
    if not load.cells:
        yield load.source
        return
    lines = _lines(load.source)
    for first, after in zip(load.cells, (*load.cells[1:], len(lines) + 1), strict=True):
        yield "\n" * (first - 1) + "".join(lines[first - 1 : after - 1])


def _lines(source: str) -> list[str]:
    """The lines as Python counts them, with their ends: `splitlines` also ends one at a form feed, or at U+2028."""
    return list(io.StringIO(source))


def silence() -> None:
    """Discard all output, and read nothing from standard input."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    for written in (sys.stdout, sys.stderr):  # a print costs nothing, also of what no encoding can write
        if isinstance(written, io.TextIOWrapper):
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
    """The descriptor, or a copy of it whose number is not in this range."""
    while first <= descriptor < after:
        descriptor = os.dup(descriptor)
    return descriptor
