"""Edits of constants, operators and names: axes, offsets, truth values, comparisons, signs,
operands, another value in scope.
"""

from __future__ import annotations

import ast
import re

from .code_parts import Changes, Part, name_of

LONGEST = 80  # characters of an equation
# of an integer: no tensor holds a larger one, and one of 4,301 digits cannot be written down again
LARGEST = 2**63
_AXES = (-1, -2, 1, 2, 0, 3, -3)
_BY_WORD = ("dim", "dims", "axis", "diagonal", "dim0", "dim1")
_MASKED = ("masked_fill", "masked_fill_", "where")
_FILLING = (*_MASKED, "full", "full_like", "fill_")
# The operators that are tried in place of another.
_OTHERS: dict[type, str] = {
    ast.Lt: "<=,>,>=",
    ast.LtE: "<,>=,>",
    ast.Gt: ">=,<,<=",
    ast.GtE: ">,<=,<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.Mult: "/,//,@,+",
    ast.Div: "*",
    ast.FloorDiv: "*,%",
    ast.Mod: "//",
    ast.MatMult: "*",
    ast.Add: "-,*",
    ast.Sub: "+",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
_SCALES = (ast.Mult, ast.Div, ast.Add, ast.Sub, ast.Pow, ast.FloorDiv, ast.MatMult)


def operators(part: Part, node: ast.AST) -> Changes:
    """Yield every operator with others in its place, and without; a condition and a mask inverted;
    another sign.
    """
    others = _others(node)
    match node:
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            yield from (
                ("comparison", 1, {node: f"{part.held(left)} {o} {part.held(right)}"})
                for o in others
            )
        case ast.BinOp(left=left, op=op, right=right):
            a, b = part.held(left), part.held(right)
            yield from (("operator", 1, {node: f"({a} {other} {b})"}) for other in others)
            if isinstance(op, _SCALES):
                yield "operand", 1, {node: a}
                yield "operand", 3, {node: b}
            if isinstance(op, ast.Div | ast.Mult):
                yield "scale", 1, {right: f"({b} ** {0.5 if isinstance(op, ast.Div) else -0.5})"}
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            yield "sign", 1, {node: part.held(operand)}
        case ast.AugAssign(target=target, value=value):
            yield from (
                ("operator", 1, {node: f"{part.of(target)} {o}= {part.held(value)}"})
                for o in others
            )
            yield "operator", 3, {node: f"{part.of(target)} = {part.held(value)}"}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "comparison", 2, {test: f"not ({part.of(test)})"}
        case ast.Call():
            yield from _filled(part, node)


def _others(node: ast.AST) -> list[str]:
    """Return the operators that are tried in place of the node's only one."""
    op = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    return [other for other in _OTHERS.get(type(op), "").split(",") if other]


def _filled(part: Part, node: ast.Call) -> Changes:
    """Yield an inverted mask, and a sign before a value that is filled in."""
    name, masks = name_of(node), [k.value for k in node.keywords if k.arg == "attn_mask"]
    given = [*node.args, *masks]
    if name in _MASKED:
        masks = given[:1]
    elif masks or name == "scaled_dot_product_attention":
        masks = given[3:] or given[-1:]
    yield from (("sign", 1, {mask: f"~{part.held(mask)}"}) for mask in masks)
    for value in node.args if name in _FILLING else ():
        if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
            yield "sign", 2, {value: f"-{part.held(value)}"}
        if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
            yield "sign", 2, {value: 'float("-inf")'}


def constants(part: Part, node: ast.AST) -> Changes:
    """Yield every constant with other values: a number with its sign, an infinity, the letters of
    an einsum.
    """
    if not isinstance(node, ast.Constant):
        return
    whole, value = part.parents[node], node.value
    if (
        isinstance(value, int | float)
        and isinstance(whole, ast.UnaryOp)
        and isinstance(whole.op, ast.USub)
    ):
        value = -value
    else:
        whole = node
    match value:
        case bool():
            yield "truth", 1, {whole: str(not value)}
        case int() if abs(value) < LARGEST:
            yield from _integers(part, whole, value)
        case float():
            others = (-value, 1 - value, 0.5, -0.5, 1.0, 0.0)
            yield from (("number", 3, {whole: repr(other)}) for other in others if other != value)
        case str() if value.strip("+-") in ("inf", "Inf", "infinity"):
            yield "sign", 1, {node: '"inf"' if value.startswith("-") else '"-inf"'}
        case str() if "->" in value and len(value) <= LONGEST and "\\" not in part.of(node):
            yield from _equations(node, part.of(node))


def _integers(part: Part, node: ast.AST, value: int) -> Changes:
    """Yield other axes where it may be one, and numbers near it."""
    outer = part.parents[node]
    is_axis = isinstance(outer, ast.Subscript | ast.Call) or (
        isinstance(outer, ast.keyword) and outer.arg in _BY_WORD
    )
    axes = _AXES if is_axis or isinstance(outer, ast.Tuple) else ()
    for other in dict.fromkeys((*axes, value - 1, value + 1, 0, 1, 2, 3)):
        if other != value:
            yield "number", 3 if other not in axes else 1 if is_axis else 2, {node: str(other)}


def _equations(node: ast.Constant, quoted: str) -> Changes:
    """Yield two letters of one operand swapped, or a letter in place of another; words where
    letters stand apart.
    """
    are_words = " " in quoted.replace(" -> ", "").replace(", ", "")
    letters = [
        m
        for m in re.finditer(r"[A-Za-z]\w*" if are_words else r"[A-Za-z]", quoted)
        if m.start() > 0
    ]
    for i, a in enumerate(letters):
        for b in letters[i + 1 :]:
            between = quoted[a.end() : b.start()]
            if "," not in between and "->" not in between and a[0] != b[0]:
                yield (
                    "equation",
                    2,
                    {node: f"{quoted[: a.start()]}{b[0]}{between}{a[0]}{quoted[b.end() :]}"},
                )
    for a in letters:
        for other in dict.fromkeys(m[0] for m in letters):
            if other != a[0]:
                yield "equation", 4, {node: f"{quoted[: a.start()]}{other}{quoted[a.end() :]}"}


def names(part: Part, node: ast.AST) -> Changes:
    """Yield each name with others in its place, and each attribute of self with others that were
    made alike.
    """
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in part.names:
            for other in (each for each in part.names if each != name):
                near = (name, other) in part.pairs or _look_alike(name, other)
                yield "name", 2 if near else 4, {node: other}
            yield from _sizes_of_self(part, node)
        case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if (
            attr in part.attributes
        ):
            made = part.attributes[attr]
            alike = [other for other, by in part.attributes.items() if other != attr and by == made]
            yield from (("attribute", 2, {node: f"self.{other}"}) for other in alike)
            if not made:
                yield from (("attribute", 4, {node: name}) for name in part.names)


def _sizes_of_self(part: Part, node: ast.Name) -> Changes:
    """Yield attributes of self for a name that may be a size: first where a root is taken of it."""
    outer = part.parents[node]
    if not isinstance(outer, ast.Attribute | ast.Subscript):
        is_root = isinstance(outer, ast.Call) and part.of(outer.func).endswith("sqrt")
        is_root = is_root or (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow))
        sizes = [name for name, made in part.attributes.items() if not made]
        yield from (("attribute", 2 if is_root else 4, {node: f"self.{name}"}) for name in sizes)


def _look_alike(a: str, b: str) -> bool:
    """Return whether they have one length and differ in one letter, or are letters of one case."""
    return (
        len(a) == len(b)
        and a.isupper() == b.isupper()
        and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
