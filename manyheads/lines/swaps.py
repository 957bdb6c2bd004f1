"""Edits that change the order of two things: arguments, operands, entries of a shape, the ways of a condition."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations

from .part import Part
from .text import Edit

MOST = 6  # the most things of which pairs are swapped
_ONE_WAY = (ast.Sub, ast.Div, ast.FloorDiv, ast.MatMult, ast.Mod, ast.Pow)


def edits(part: Part) -> Iterator[Edit]:
    """Every pair, swapped."""
    for node in part.nodes:
        if isinstance(node, ast.Call):
            yield from _pairs(part, [a for a in node.args if not isinstance(a, ast.Starred)])
            yield from _pairs(part, [k.value for k in node.keywords])
        elif isinstance(node, ast.Tuple | ast.List):
            yield from _pairs(part, [e for e in node.elts if not isinstance(e, ast.Starred)])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, _ONE_WAY):
            yield from _pairs(part, [node.left, node.right])
        elif isinstance(node, ast.IfExp):
            yield from _pairs(part, [node.body, node.orelse])


def _pairs(part: Part, nodes: Sequence[ast.expr]) -> Iterator[Edit]:
    for a, b in combinations(nodes[:MOST], 2):
        if part.text.of(a) != part.text.of(b):
            yield part.replace("swap", 1, (a, _placed(part, b)), (b, _placed(part, a)))


def _placed(part: Part, node: ast.expr) -> str:
    """As it stands among arguments or in a tuple, where nothing takes it apart; else held together."""
    outer = part.parent(node)
    return part.text.held(node) if isinstance(outer, ast.BinOp | ast.IfExp) else part.text.of(node)
