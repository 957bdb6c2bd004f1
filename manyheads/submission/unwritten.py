"""Tell whether an attempt, or one of its functions, has nothing written in it: each is as empty as
the stub's, in whatever way.
"""

from __future__ import annotations

import ast
import math
from functools import lru_cache
from typing import NamedTuple

from .source_text import DEFINITIONS, nodes_of, statements_of

UNTOUCHED = "stub_untouched"  # the misconception's id


class LeftOver(NamedTuple):
    """A stub's `raise` beside something that is written. is_below: whether that stands above it."""

    line: int
    is_below: bool


def is_unwritten(source: str) -> bool:
    """Return whether there are functions or classes, and none of them has any content; or nothing
    at all but remarks.

    `pass`, a docstring, `...`, `return None`, `raise NotImplementedError` and `super().__init__()`
    are no content. What stands below `if __name__ == "__main__"` does not count. A text that Python
    cannot parse is not unwritten.
    """
    if all(
        line.isspace() or line.lstrip().startswith("#") for line in source.splitlines(keepends=True)
    ):
        return True
    nodes = nodes_of(source)
    stores = any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in nodes
    )
    return (
        any(isinstance(node, DEFINITIONS) for node in nodes)
        and not stores
        and all(map(_is_empty, nodes))
    )


def definitions_of(source: str) -> dict[str, ast.stmt]:
    """Return the functions and classes at the top of the file, by their names: of several with one
    name the last counts.
    """
    return {
        statement.name: statement
        for statement in statements_of(source)
        if isinstance(statement, DEFINITIONS)
    }


@lru_cache(maxsize=2)  # several look at each text, one after the other
def unwritten_names(source: str) -> frozenset[str]:
    """Return the functions and classes of the module that have no content, in an attempt of which
    others may have some.

    Where a name is defined twice the last definition counts.
    """
    return frozenset(
        name for name, definition in definitions_of(source).items() if has_no_content(definition)
    )


def left_over_raise(source: str, name: str) -> LeftOver | None:
    """Return the stub's `raise` that stands beside what is written in the function, or in a method
    of the class.
    """
    nodes = ast.walk(definitions_of(source).get(name, ast.Pass()))
    for body in (node.body for node in nodes if isinstance(node, ast.FunctionDef)):
        stub = next((i for i, statement in enumerate(body) if _is_stub(statement)), None)
        if stub is not None and not all(map(_does_nothing, body)):
            return LeftOver(body[stub].lineno, is_below=not all(map(_does_nothing, body[:stub])))
    return None


def unwritten_methods(source: str, name: str) -> list[str]:
    """Return the methods of this class that have no content, where others have some."""
    last = definitions_of(source).get(name)
    methods = (
        [n for n in last.body if isinstance(n, ast.FunctionDef)]
        if isinstance(last, ast.ClassDef)
        else []
    )
    empty = [method.name for method in methods if has_no_content(method)]
    return empty if len(empty) < len(methods) else []


def is_beside_code(source: str, line: int) -> bool:
    """Return whether something is written above this line, or around it, in the innermost function
    that it stands in.
    """
    around = [function for function in _functions(source) if function[0] <= line <= function[1]]
    return bool(around) and line > max(around)[2]


@lru_cache(maxsize=2)  # hundreds of calls may end at one line, or each at another
def _functions(source: str) -> tuple[tuple[int, int, float], ...]:
    """Return the first and the last line of each function, and where something is written; infinity
    where nothing is.
    """
    return tuple(
        (
            node.lineno,
            node.end_lineno or 0,
            math.inf if has_no_content(node) else min(written, default=node.lineno),
        )
        for node in nodes_of(source)
        if isinstance(node, ast.FunctionDef)
        for written in [
            [statement.lineno for statement in node.body if not _does_nothing(statement)]
        ]
    )


def has_no_content(definition: ast.AST) -> bool:
    """Return whether a function or class is as empty as the stub's, and so is all that stands in
    it.
    """
    return all(map(_is_empty, ast.walk(definition)))  # of most, nothing but the first is looked at


def _is_empty(node: ast.AST) -> bool:
    match node:
        case ast.Lambda():
            return False
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            return all(map(_does_nothing, node.body))
        case ast.ClassDef(
            decorator_list=[],
            bases=[]
            | [
                ast.Name("Module" | "object")
                | ast.Attribute(ast.Name("nn") | ast.Attribute(ast.Name("torch"), "nn"), "Module")
            ],
        ):
            methods = ast.FunctionDef | ast.AsyncFunctionDef
            return all(
                isinstance(statement, methods) or _does_nothing(statement)
                for statement in node.body
            )
    return not isinstance(node, DEFINITIONS)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"), [], [])):
            return True
    return _is_stub(statement)


def _is_stub(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"
