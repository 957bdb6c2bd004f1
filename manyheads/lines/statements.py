"""Edits of whole statements: one taken out, a value returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .part import FUNCTIONS, Part
from .text import Edit


def edits(part: Part) -> Iterator[Edit]:
    """Every simple statement taken out, and the last one of a function returned."""
    for node in part.nodes:
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign | ast.If) and node is not part.root:
            yield part.replace("statement", 3, (node, "pass"))
        if isinstance(node, FUNCTIONS) and isinstance(node.body[-1], ast.Expr):
            last = node.body[-1]
            if not isinstance(last.value, ast.Constant):
                yield part.replace("return", 1, (last, f"return {part.text.of(last)}"))
        if isinstance(node, FUNCTIONS) and isinstance(last := node.body[-1], ast.Assign):
            if isinstance(last.targets[0], ast.Name):
                yield part.replace("return", 1, (last, f"return {part.text.of(last.value)}"))
