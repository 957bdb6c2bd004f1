"""Edit constants and operators: axes, offsets, truth values, comparisons, signs, operands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .edit_text import Edit
from .reached_parts import Part, name_of

# Edits of what stands as a constant: axes, offsets, truth values, infinities, and the letters of an einsum.

LONGEST = 80  # characters of an equation
LARGEST = 2**63  # of an integer: no tensor holds a larger one, and one of 4,301 digits cannot be written down again
_AXES = (-1, -2, 1, 2, 0, 3, -3)
_BY_WORD = ("dim", "dims", "axis", "diagonal", "dim0", "dim1")
_WORD = re.compile(r"[A-Za-z]\w*")
_LETTER = re.compile(r"[A-Za-z]")


def constant_edits(part: Part) -> Iterator[Edit]:
    """Yield every constant, with other values."""
    for node in part.nodes:
        if isinstance(node, ast.Constant):
            whole, value = _signed(part, node)
            if type(value) is bool:
                yield part.replace("truth", 1, (whole, str(not value)))
            elif type(value) is int and abs(value) < LARGEST:
                yield from _other_integers(part, whole, value)
            elif type(value) is float:
                yield from (part.replace("number", 3, (whole, f"{n!r}")) for n in _other_floats(value))
            elif isinstance(value, str):
                yield from _other_words(part, node, value)


def _signed(part: Part, node: ast.Constant) -> tuple[ast.expr, object]:
    outer = part.parent(node)
    if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.USub) and isinstance(node.value, int | float):
        return outer, -node.value
    return node, node.value


def _other_integers(part: Part, node: ast.expr, value: int) -> Iterator[Edit]:
    outer = part.parent(node)
    is_axis = isinstance(outer, ast.Subscript | ast.Call) or (isinstance(outer, ast.keyword) and outer.arg in _BY_WORD)
    if is_axis:
        yield from (part.replace("number", 1, (node, str(n))) for n in _AXES if n != value)
    elif isinstance(outer, ast.Tuple):
        yield from (part.replace("number", 2, (node, str(n))) for n in _AXES if n != value)
    near = [n for n in (value - 1, value + 1, 0, 1, 2, 3) if n != value and not (is_axis and n in _AXES)]
    yield from (part.replace("number", 3, (node, str(n))) for n in dict.fromkeys(near))


def _other_floats(value: float) -> Iterator[float]:
    yield from (n for n in (-value, 1 - value, 0.5, -0.5, 1.0, 0.0) if n != value)


def _other_words(part: Part, node: ast.Constant, value: str) -> Iterator[Edit]:
    if value.strip("+-") in ("inf", "Inf", "infinity"):
        yield part.replace("sign", 1, (node, '"inf"' if value.startswith("-") else '"-inf"'))
    elif "->" in value and len(value) <= LONGEST and "\\" not in part.text.of(node):
        yield from _equations(part, node, part.text.of(node))


def _equations(part: Part, node: ast.Constant, quoted: str) -> Iterator[Edit]:
    """Yield two letters of one operand swapped, or a letter in place of another; words where letters stand apart."""
    token = _WORD if " " in quoted.replace(" -> ", "").replace(", ", "") else _LETTER
    found = [m for m in token.finditer(quoted) if m.start() > 0]
    for i, a in enumerate(found):
        for b in found[i + 1 :]:
            between = quoted[a.end() : b.start()]
            if "," not in between and "->" not in between and a[0] != b[0]:
                swapped = quoted[: a.start()] + b[0] + between + a[0] + quoted[b.end() :]
                yield part.replace("equation", 2, (node, swapped))
    for a in found:
        for other in dict.fromkeys(m[0] for m in found):
            if other != a[0]:
                yield part.replace("equation", 4, (node, quoted[: a.start()] + other + quoted[a.end() :]))


# Edits of operators: another comparison, a sign, a product for a quotient, an operand left out, a mask inverted.

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


def operator_edits(part: Part) -> Iterator[Edit]:
    """Yield every operator, with others in its place or without."""
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
    """Yield an inverted mask, and a sign before a value that is filled in."""
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
