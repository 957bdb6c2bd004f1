"""A source text as parts: the statements of its top level, in their order.

Each runs by itself, and one that fails stops nothing. A script and a notebook are run alike.
"""

from __future__ import annotations
import __future__

import ast
import functools
import io
import operator
import types
from collections.abc import Iterator
from dataclasses import replace

from .answers import Raised
from .execute import raised_by
from .messages import Load

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class Program:
    """The parts of one source text, and the module that they run in."""

    def __init__(self, load: Load, module: types.ModuleType) -> None:
        """Parse the text. Raises SyntaxError for a script; of a notebook, a cell that cannot be parsed is one part."""
        self._name, self._module = load.name, module
        self._parts: list[tuple[int, ast.stmt | SyntaxError]] = []
        self._flags = 0  # of `from __future__ import …`, which holds for the parts below it, too
        for first, text in cells_of(load):
            try:
                self._parts += [(_line(part), part) for part in _parsed(text, load.name).body]
            except SyntaxError as error:
                if not load.cells:
                    raise
                self._parts.append((first, error))

    @property
    def lines(self) -> tuple[int, ...]:
        """The line at which each part begins."""
        return tuple(line for line, _ in self._parts)

    def run(self, number: int) -> Raised | None:
        """Run one part. Returns its exception, if it raised one."""
        line, part = self._parts[number]
        try:
            if isinstance(part, SyntaxError):
                raise part
            code = self._compiled(part)
            self._flags |= code.co_flags & _FUTURE
            exec(code, vars(self._module))
        except BaseException as error:  # SystemExit, too
            return replace(raised_by(error, "load", self._name), part=line)
        return None

    def _compiled(self, part: ast.stmt) -> types.CodeType:
        module = ast.Module([part], [])
        try:
            code: types.CodeType = compile(module, self._name, "exec", flags=self._flags, dont_inherit=True)
        except (RecursionError, MemoryError):
            raise SyntaxError("too many nested expressions") from None
        return code


def cells_of(load: Load) -> Iterator[tuple[int, str]]:
    """Yield each cell of a notebook, with its first line, below as many blank lines as stand above it; of a script all of it."""
    if not load.cells:
        yield 1, load.source
        return
    lines = lines_of(load.source)
    for first, after in zip(load.cells, (*load.cells[1:], len(lines) + 1), strict=True):
        yield first, "\n" * (first - 1) + "".join(lines[first - 1 : after - 1])


def lines_of(source: str) -> list[str]:
    """Return the lines as Python counts them, with their ends: `splitlines` also ends one at a form feed, or at U+2028."""
    return list(io.StringIO(source))


def _parsed(text: str, name: str) -> ast.Module:
    """Raise SyntaxError, also where Python gives up on the depth and calls that a recursion, or a lack of memory."""
    try:
        tree = compile(text, name, "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
    except (RecursionError, MemoryError):
        raise SyntaxError("too many nested expressions") from None
    assert isinstance(tree, ast.Module)
    return tree


def _line(part: ast.stmt) -> int:
    """Return the first line of a statement, that of its first decorator where it has one."""
    decorators: list[ast.expr] = getattr(part, "decorator_list", [])
    return min([part.lineno, *(decorator.lineno for decorator in decorators)])
