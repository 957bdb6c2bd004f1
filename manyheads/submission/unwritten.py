"""Tell whether an attempt, or one of its functions, has nothing written in it."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from functools import lru_cache

from .notebook import CODE_LIMIT
from .source_text import parsed

# The statements of an attempt's text, for whoever looks at it without running it.


def read_statements(source: str) -> tuple[ast.stmt, ...]:
    """Return all statements of the module, below its main guard, too.

    Empty if the text is longer than CODE_LIMIT characters, or Python cannot parse it.
    """
    if len(source) > CODE_LIMIT:
        return ()
    try:
        return tuple(parsed(source).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


tree_of = lru_cache(maxsize=2)(read_statements)  # half a dozen look at each text, one after the other


@lru_cache(maxsize=2)
def statements_of(source: str) -> tuple[ast.stmt, ...]:
    """Return the statements of the module, but for those below `if __name__ == "__main__"`. Nobody may change them."""
    return tuple(part for part in tree_of(source) if not (isinstance(part, ast.If) and names_main(part.test)))


def names_main(test: ast.expr) -> bool:
    """Return whether the condition of an `if` is the main guard's."""
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


# Whether an attempt has nothing written in it: each function is as empty as the stub's, in whatever way.

UNTOUCHED = "stub_untouched"  # the misconception's id
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MODULES = ("Module", "nn.Module", "torch.nn.Module", "object")  # base classes that bring nothing


def is_unwritten(source: str) -> bool:
    """Return whether there are functions or classes, and none of them has any content; or nothing at all but remarks.

    `pass`, a docstring, `...`, `return None`, `raise NotImplementedError` and `super().__init__()` are no content. What
    stands below `if __name__ == "__main__"` does not count. A text that Python cannot parse is not unwritten.
    """
    if all(line.isspace() or line.lstrip().startswith("#") for line in source.splitlines(keepends=True)):
        return True
    nodes = [node for part in statements_of(source) for node in ast.walk(part)]
    if any(isinstance(node, ast.Lambda) or _sets_an_attribute(node) for node in nodes):
        return False
    definitions = [node for node in nodes if isinstance(node, DEFINITIONS)]
    return bool(definitions) and all(_is_empty(definition) for definition in definitions)


@lru_cache(maxsize=2)  # several look at each text, one after the other
def unwritten_names(source: str) -> frozenset[str]:
    """Return the functions and classes of the module that have no content, in an attempt of which others may have some.

    Where a name is defined twice the last definition counts.
    """
    last = {part.name: part for part in statements_of(source) if isinstance(part, DEFINITIONS)}
    return frozenset(name for name, definition in last.items() if has_no_content(definition))


@dataclass(frozen=True)
class LeftOver:
    """A stub's `raise` beside something that is written. is_below: whether that stands above it."""

    line: int
    is_below: bool


def left_over_raise(source: str, name: str) -> LeftOver | None:
    """Return the stub's `raise` that stands beside what is written in the function, or in a method of the class."""
    last = [part for part in statements_of(source) if isinstance(part, DEFINITIONS) and part.name == name][-1:]
    for body in (node.body for part in last for node in ast.walk(part) if isinstance(node, ast.FunctionDef)):
        stub = next((i for i, statement in enumerate(body) if _is_stub(statement)), None)
        if stub is not None and not all(map(_does_nothing, body)):
            return LeftOver(body[stub].lineno, is_below=not all(map(_does_nothing, body[:stub])))
    return None


def is_beside_code(source: str, line: int) -> bool:
    """Return whether something is written above this line, or around it, in the innermost function that it stands in."""
    around = [function for function in _functions(source) if function.first <= line <= function.last]
    return bool(around) and line > max(around, key=lambda each: each.first).written_from


@dataclass(frozen=True)
class _Function:
    first: int
    last: int
    written_from: float  # the line of the first statement that does something; infinite where none does


@lru_cache(maxsize=2)  # hundreds of calls may end at one line, or each at another
def _functions(source: str) -> tuple[_Function, ...]:
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return tuple(
        _Function(function.lineno, function.end_lineno or 0, _written_from(function)) for function in functions
    )


def _written_from(function: ast.FunctionDef) -> float:
    if has_no_content(function):
        return math.inf
    return min((part.lineno for part in function.body if not _does_nothing(part)), default=function.lineno)


def unwritten_methods(source: str, name: str) -> list[str]:
    """Return the methods of this class that have no content, where others have some."""
    last = [part for part in statements_of(source) if isinstance(part, ast.ClassDef) and part.name == name][-1:]
    methods = [node for part in last for node in part.body if isinstance(node, ast.FunctionDef)]
    empty = [method.name for method in methods if has_no_content(method)]
    return empty if len(empty) < len(methods) else []


def has_no_content(definition: _Definition) -> bool:
    """Return whether a function or class is as empty as the stub's, and so is all that stands in it."""
    if not _is_empty(definition):  # as most are not: this spares looking at all that stands in it
        return False
    return not any(
        isinstance(node, ast.Lambda) or (isinstance(node, DEFINITIONS) and not _is_empty(node))
        for node in ast.walk(definition)
    )


def _sets_an_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_empty(definition: _Definition) -> bool:
    if definition.decorator_list:
        return False
    if isinstance(definition, ast.ClassDef):
        inherits = any(_dotted(base) not in MODULES for base in definition.bases)
        functions = ast.FunctionDef | ast.AsyncFunctionDef  # which are looked at one by one
        return not inherits and all(isinstance(s, functions) or _does_nothing(s) for s in definition.body)
    return all(_does_nothing(statement) for statement in definition.body)


def _dotted(base: ast.expr) -> str:
    """Return the name of a base class, "torch.nn.Module"; empty where it is no name. Step by step: a student chooses how long."""
    parts: list[str] = []
    while isinstance(base, ast.Attribute):
        parts.append(base.attr)
        base = base.value
    return ".".join([base.id, *reversed(parts)]) if isinstance(base, ast.Name) else ""


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"), [], [])):
            return True
    return _is_stub(statement)


def _is_stub(statement: ast.stmt) -> bool:
    match statement:
        case ast.Raise(ast.Name("NotImplementedError") | ast.Call(ast.Name("NotImplementedError"))):
            return True
    return False
