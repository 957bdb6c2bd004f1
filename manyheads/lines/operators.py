"""Edits of operators: another comparison, a sign, a product for a quotient, an operand left out, a mask inverted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .part import Part, name_of
from .text import Edit

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">", ">="),
    ast.LtE: ("<", ">=", ">"),
    ast.Gt: (">=", "<", "<="),
    ast.GtE: (">", "<=", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
_OTHERS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Mult: ("/", "//", "@", "+"),
    ast.Div: ("*",),
    ast.FloorDiv: ("*", "%"),
    ast.Mod: ("//",),
    ast.Add: ("-", "*"),
    ast.Sub: ("+",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
    ast.MatMult: ("*",),
}
_SCALES = (ast.Mult, ast.Div, ast.Add, ast.Sub, ast.Pow, ast.FloorDiv, ast.MatMult)
_MASKED = ("masked_fill", "masked_fill_", "where")


def edits(part: Part) -> Iterator[Edit]:
    """Every operator, with others in its place or without."""
    for node in part.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = part.text.held(node.left), part.text.held(node.comparators[0])
            for sign in _COMPARISONS.get(type(node.ops[0]), ()):
                yield part.replace("comparison", 1, (node, f"{left} {sign} {right}"))
        elif isinstance(node, ast.BinOp):
            yield from _of_two(part, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.Not):
            yield part.replace("sign", 1, (node, part.text.held(node.operand)))
        elif isinstance(node, ast.AugAssign):
            yield from _in_place(part, node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield part.replace("comparison", 2, (node.test, f"not ({part.text.of(node.test)})"))
        elif isinstance(node, ast.Call):
            yield from _of_call(part, node)


def _of_two(part: Part, node: ast.BinOp) -> Iterator[Edit]:
    left, right = part.text.held(node.left), part.text.held(node.right)
    for sign in _OTHERS.get(type(node.op), ()):
        yield part.replace("operator", 1, (node, f"({left} {sign} {right})"))
    if isinstance(node.op, _SCALES):
        yield part.replace("operand", 1, (node, left))
        yield part.replace("operand", 3, (node, right))
    if isinstance(node.op, ast.Div | ast.Mult):
        yield part.replace("scale", 1, (node.right, f"({right} ** {0.5 if isinstance(node.op, ast.Div) else -0.5})"))


def _in_place(part: Part, node: ast.AugAssign) -> Iterator[Edit]:
    target, value = part.text.of(node.target), part.text.held(node.value)
    for sign in _OTHERS.get(type(node.op), ()):
        yield part.replace("operator", 1, (node, f"{target} {sign}= {value}"))
    yield part.replace("operator", 3, (node, f"{target} = {value}"))


def _of_call(part: Part, node: ast.Call) -> Iterator[Edit]:
    """An inverted mask, and a sign before a value that is filled in."""
    name = name_of(node)
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "attn_mask")]
    if name in _MASKED or name == "scaled_dot_product_attention" or any(k.arg == "attn_mask" for k in node.keywords):
        masks = given[:1] if name in _MASKED else given[3:] or given[-1:]
        for mask in masks:
            yield part.replace("sign", 1, (mask, f"~{part.text.held(mask)}"))
    if name in ("masked_fill", "masked_fill_", "where", "full", "full_like", "fill_"):
        for value in node.args:
            if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
                yield part.replace("sign", 2, (value, f"-{part.text.held(value)}"))
            if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
                yield part.replace("sign", 2, (value, 'float("-inf")'))
