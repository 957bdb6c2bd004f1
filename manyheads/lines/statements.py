"""Edits of whole statements: one taken out, a value returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .part import FUNCTIONS, Part, is_docstring
from .text import Edit


def edits(part: Part) -> Iterator[Edit]:
    """Every simple statement taken out, and the last one of a function returned."""
    for node in part.nodes:
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign | ast.If) and node is not part.root:
            yield part.replace("statement", 3, (node, "pass"))
        if isinstance(node, FUNCTIONS):
            yield from _returned(part, node.body[-1])


def _returned(part: Part, last: ast.stmt) -> Iterator[Edit]:
    is_value = isinstance(last, ast.Expr) and not is_docstring(last)
    if is_value or (isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name)):
        assert isinstance(last, ast.Expr | ast.Assign)
        yield part.replace("return", 1, (last, f"return {part.text.of(last.value)}"))
