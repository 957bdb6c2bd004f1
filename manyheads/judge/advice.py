"""A sentence about a definition that is of another kind than is asked for. The text is read, never run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..submission.source_text import DEFINITIONS, statements_of


def of_another_kind(source: str, name: str, is_class: bool) -> str:
    """Return a sentence where what has the name is no plain function, or no class, where one is asked for; else "".

    is_class: whether a class is asked for.
    """
    found = [part for part in statements_of(source) if isinstance(part, DEFINITIONS) and part.name == name]
    match found[-1:]:
        case [ast.AsyncFunctionDef() as last] if not is_class:
            return f"It is an `async def`, written on line {last.lineno}, so that a call gives a coroutine: take `async` away"
        case [ast.ClassDef() as last] if not is_class:
            return f"It is a class, written on line {last.lineno}, and a function is asked for"
        case [ast.FunctionDef() as last] if not is_class and (yields := _yields_in(last)):
            return f"A `yield` makes it a generator, written on line {yields}: return the answer"
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as last] if is_class:
            return f"It is a function, written on line {last.lineno}, and a class is asked for"
    return ""


def in_another_order(source: str, name: str, due: Sequence[str]) -> str:
    """Return a sentence where a function takes the arguments that are due in another order; else ""."""
    found = [part for part in statements_of(source) if isinstance(part, ast.FunctionDef) and part.name == name]
    own = [arg.arg for each in found[-1:] for arg in (*each.args.posonlyargs, *each.args.args)]
    if own == list(due) or sorted(own) != sorted(due):
        return ""
    return f"It is written as {name}({', '.join(own)}), and called as {name}({', '.join(due)})"


def refuses_nothing(source: str, name: str) -> str:
    """Return a sentence where an assert of a function or class holds a pair in brackets, which is always true; else ""."""
    inside = (node for part in statements_of(source) if getattr(part, "name", "") == name for node in ast.walk(part))
    for node in inside:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            return f"The assert on line {node.lineno} refuses nothing: condition and message in one pair of brackets are always true"
    return ""


def _yields_in(function: ast.FunctionDef) -> int:
    left: list[ast.AST] = list(function.body)
    lines = []
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            lines.append(node.lineno)
        if not isinstance(node, (*DEFINITIONS, ast.Lambda, ast.GeneratorExp)):
            left += ast.iter_child_nodes(node)
    return min(lines, default=0)
