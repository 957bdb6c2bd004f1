"""The process of one attempt: import the student's source, then answer calls.

It ends when the judge closes the connection. A source text runs as parts: the statements of its top
level, in order. Each part runs by itself, and the next one runs even if it fails. Scripts and
notebooks are run in the same way.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import io
import linecache
import operator
import os
import sys
import types
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from importlib.machinery import ModuleSpec
from typing import Any, NamedTuple

from . import wire
from .answer_call import execute, raised_by
from .blocks import KeptBlocks
from .messages import (
    STOPPED_LIMIT,
    Batch,
    Blocks,
    Call,
    Load,
    Part,
    Raised,
    Reply,
    TraceCall,
    Traced,
    Training,
)
from .trace_operations import trace
from .training import Trainer

_FLAGS = (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_FUTURE = functools.reduce(operator.or_, _FLAGS)
MODULE = "attempt"  # the name under which the student's module stands in sys.modules


def serve(receives: io.BufferedReader, sends: io.BufferedWriter) -> None:
    """Answer messages until the judge closes the connection.

    Student code runs in this function and nowhere else.

    Args:
        receives: the pipe or socket from the judge.
        sends: the pipe or socket to the judge.
    """
    attempt = _Attempt()
    process = os.getpid()
    while (message := wire.receive(receives)) is not None:
        if isinstance(message, Batch):  # sending all answers together wakes the judge only once
            answers = b"".join(
                [attempt.answer(wire.receive(receives)) for _ in range(message.count)]
            )
            answer = wire.LENGTH.pack(len(answers)) + answers
        else:
            answer = attempt.answer(message)
        # If the student's source has forked, this may be the child. Only the parent answers.
        if os.getpid() != process:
            os._exit(0)
        sends.write(answer)
        sends.flush()


class _Attempt:
    """The student's module, once it is loaded."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._namespace: Mapping[str, object] = {}
        self._name = ""
        self._trainer = Trainer()
        self._blocks = KeptBlocks()

    def answer(self, message: object) -> bytes:
        """Carry out one message, and return the answer as bytes.

        Raises TypeError for anything that is not a message for an attempt.
        """
        reply: Reply | Traced
        if isinstance(message, Load):
            self._name = message.name
            self._program, self._namespace, reply = import_source(message)
        elif isinstance(message, Part):
            assert self._program is not None
            raised = self._program.run(message.number)
            reply = Reply(stopped=(raised,) if raised else ())
        elif isinstance(message, Call):
            reply = execute(self._namespace, message, self._name)
        elif isinstance(message, TraceCall):
            reply = trace(self._namespace, message, self._name)
        elif isinstance(message, Training):
            reply = self._trainer.answer(self._namespace, message, self._name)
        elif isinstance(message, Blocks):
            reply = self._blocks.answer(self._namespace, message, self._name)
        else:
            raise TypeError(f"not a message for an attempt: {type(message).__name__}")
        return wire.encode(reply)


class Imported(NamedTuple):
    """A source that was run as a module.

    Attributes:
        program: the parts of the source, or None if the text cannot be parsed.
        namespace: the names of the module.
        reply: the reply to the message `Load`.
    """

    program: Program | None
    namespace: Mapping[str, object]
    reply: Reply


def import_source(load: Load) -> Imported:
    """Run the source as a module, part by part, without the parts to skip.

    The module is `MODULE` in sys.modules, and tracebacks find its lines. A notebook also gets the
    functions `get_ipython` and `display`, which do nothing.

    The reply has the first STOPPED_LIMIT exceptions of parts. For a stepwise load, no part runs,
    and the reply has the lines of the parts. If the text cannot be parsed, it has the SyntaxError.
    """
    module = types.ModuleType(MODULE)
    module.__file__ = load.name
    sys.modules[MODULE] = module
    if load.cells:
        vars(module).update(get_ipython=_do_nothing, display=_do_nothing)
    lines = lines_of(load.source)
    linecache.cache[load.name] = (len(load.source), None, lines, load.name)
    try:
        program = Program(load, module)
    except SyntaxError as error:
        return Imported(None, vars(module), Reply(raised=raised_by(error, "load", load.name)))
    if load.stepwise:
        return Imported(program, vars(module), Reply(parts=program.lines))
    stopped = [
        program.run(number) for number in range(len(program.lines)) if number not in load.skipped
    ]
    exceptions = tuple(raised for raised in stopped if raised)
    return Imported(program, vars(module), Reply(stopped=exceptions[:STOPPED_LIMIT]))


def _do_nothing(*args: object, **kwargs: object) -> None:
    """Stand in for a function that a notebook's kernel defines. The box has no kernel."""


class Program:
    """The parts of one source text, and the module that they run in."""

    def __init__(self, load: Load, module: types.ModuleType) -> None:
        """Parse the text.

        Raises SyntaxError if a script cannot be parsed. A cell of a notebook that cannot be parsed
        is one part.
        """
        self._name, self._module = load.name, module
        self._parts: list[tuple[int, ast.stmt | SyntaxError]] = []
        # the flags of each `from __future__ import …`; they hold for all parts below it
        self._flags = 0
        for first_line, text in cells_of(load):
            try:
                self._parts += [
                    (_line(statement), statement)
                    for statement in _compile_source(text, load.name, ast.PyCF_ONLY_AST).body
                ]
            except SyntaxError as error:
                if not load.cells:
                    raise
                self._parts.append((first_line, error))

    @property
    def lines(self) -> tuple[int, ...]:
        """The line at which each part begins."""
        return tuple(line for line, _ in self._parts)

    def run(self, number: int) -> Raised | None:
        """Run one part, and return its exception with the line of the part, or None.

        The exception of a part that cannot be parsed is its SyntaxError.
        """
        line, statement = self._parts[number]
        try:
            if isinstance(statement, SyntaxError):
                raise statement
            code = _compile_source(ast.Module([statement], []), self._name, self._flags)
            self._flags |= code.co_flags & _FUTURE
            exec(code, vars(self._module))
        except BaseException as error:  # SystemExit, too
            return replace(raised_by(error, "load", self._name), part=line)
        return None


def cells_of(load: Load) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line and the text of each cell. A script is one cell.

    A text begins with a blank line for each line above its cell, so that line numbers are right.
    """
    if not load.cells:
        yield 1, load.source
        return
    lines = lines_of(load.source)
    for first_line, after in zip(load.cells, (*load.cells[1:], len(lines) + 1), strict=True):
        yield first_line, "\n" * (first_line - 1) + "".join(lines[first_line - 1 : after - 1])


def lines_of(source: str) -> list[str]:
    """Return the lines as Python counts them, with their ends.

    `str.splitlines` would also end a line at a form feed or at U+2028.
    """
    return list(io.StringIO(source))


def _compile_source(source: str | ast.Module, name: str, flags: int) -> Any:
    """Return the compiled source. Raises SyntaxError.

    If the source is nested too deeply, Python raises RecursionError or MemoryError. These become a
    SyntaxError, too.
    """
    try:
        return compile(source, name, "exec", flags=flags, dont_inherit=True)
    except (RecursionError, MemoryError):
        raise SyntaxError("too many nested expressions") from None


def _line(statement: ast.stmt) -> int:
    """Return the first line of a statement. Its decorators belong to it."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def silence() -> None:
    """Discard all output of this process from now on, and let standard input be empty."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    # A print must not raise, not even if the encoding cannot represent a character.
    for written in (sys.stdout, sys.stderr):
        if isinstance(written, io.TextIOWrapper):
            # raised if an object in place of the standard output is closed
            with contextlib.suppress(OSError):
                written.reconfigure(errors="backslashreplace")


def hide_descriptors(*descriptors: int) -> tuple[int, ...]:
    """Move these descriptors to numbers from 64 on, and return the numbers.

    All other descriptors from 3 to 1023 are closed. Student code is unlikely to close descriptors
    with such large numbers by accident.
    """
    import fcntl  # Windows has none

    start = 64
    after = 64 + len(descriptors)
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, after) for descriptor in descriptors]
    for number, descriptor in enumerate(copies, start):
        os.dup2(descriptor, number, inheritable=False)
    os.closerange(3, start)
    os.closerange(after, 1024)
    return tuple(range(start, after))


class _Only:
    """Wraps one of Python's finders, and finds only modules of the allowed top-level packages."""

    def __init__(self, finder: Any, allowed: Collection[str]) -> None:
        self._finder, self._allowed = finder, allowed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, name: str, *arguments: Any) -> ModuleSpec | None:
        """Return the spec of the module, or None if it does not exist or is not allowed."""
        # One module of the standard library has a name that depends on the system.
        allowed = name.partition(".")[0] in self._allowed or name.startswith("_sysconfigdata_")
        spec: ModuleSpec | None = self._finder.find_spec(name, *arguments) if allowed else None
        return spec


def allow_only(packages: Collection[str]) -> None:
    """Let this process import only these packages, the standard library and the worker.

    Other modules are removed from sys.modules, so their names cannot be imported again.
    """
    allowed = frozenset(
        {*sys.stdlib_module_names, *packages, "__main__", __name__.partition(".")[0]}
    )
    for name in [name for name in sys.modules if name.partition(".")[0] not in allowed]:
        del sys.modules[name]
    sys.meta_path[:] = [_Only(finder, allowed) for finder in sys.meta_path]
