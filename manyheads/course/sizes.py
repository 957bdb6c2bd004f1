"""Sizes as course.yaml writes them: a number, or arithmetic with names of other sizes, such as `min(T, 256)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"min": min, "max": max}


def size_of(text: str | int, known: Mapping[str, int]) -> int:
    """The size that the text says. Raises ValueError with one sentence."""
    try:
        return _value(ast.parse(str(text), mode="eval").body, known)
    except KeyError as unknown:
        raise ValueError(f"{text!r} names {unknown.args[0]!r}, which has no size") from None
    except (SyntaxError, TypeError):
        raise ValueError(f"{text!r} is not a size, such as 64, T + 1 or min(T, 256)") from None


def _value(node: ast.expr, known: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, known), _value(node.right, known))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
        and not node.keywords
    ):
        return _FUNCTIONS[node.func.id](*(_value(each, known) for each in node.args))
    raise TypeError
