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


def operators(code: Part, node: ast.AST) -> Changes:
    """Yield every operator with others in its place, and without; a condition and a mask inverted;
    another sign.
    """
    replacements = _replacements(node)
    match node:
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            yield from (
                ("comparison", 1, {node: f"{code.atom(left)} {o} {code.atom(right)}"})
                for o in replacements
            )
        case ast.BinOp(left=left, op=op, right=right):
            a, b = code.atom(left), code.atom(right)
            yield from (
                ("operator", 1, {node: f"({a} {replacement} {b})"}) for replacement in replacements
            )
            if isinstance(op, _SCALES):
                yield "operand", 1, {node: a}
                yield "operand", 3, {node: b}
            if isinstance(op, ast.Div | ast.Mult):
                yield "scale", 1, {right: f"({b} ** {0.5 if isinstance(op, ast.Div) else -0.5})"}
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            yield "sign", 1, {node: code.atom(operand)}
        case ast.AugAssign(target=target, value=value):
            yield from (
                ("operator", 1, {node: f"{code.text(target)} {o}= {code.atom(value)}"})
                for o in replacements
            )
            yield "operator", 3, {node: f"{code.text(target)} = {code.atom(value)}"}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "comparison", 2, {test: f"not ({code.text(test)})"}
        case ast.Call():
            yield from _filled(code, node)


def _replacements(node: ast.AST) -> list[str]:
    """Return the operators that are tried in place of the node's only one."""
    op = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    return [replacement for replacement in _OTHERS.get(type(op), "").split(",") if replacement]


def _filled(code: Part, node: ast.Call) -> Changes:
    """Yield an inverted mask, and a sign before a value that is filled in."""
    name, masks = name_of(node), [k.value for k in node.keywords if k.arg == "attn_mask"]
    args = [*node.args, *masks]
    if name in _MASKED:
        masks = args[:1]
    elif masks or name == "scaled_dot_product_attention":
        masks = args[3:] or args[-1:]
    yield from (("sign", 1, {mask: f"~{code.atom(mask)}"}) for mask in masks)
    for value in node.args if name in _FILLING else ():
        if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
            yield "sign", 2, {value: f"-{code.atom(value)}"}
        if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
            yield "sign", 2, {value: 'float("-inf")'}


def constants(code: Part, node: ast.AST) -> Changes:
    """Yield every constant with other values: a number with its sign, an infinity, the letters of
    an einsum.
    """
    if not isinstance(node, ast.Constant):
        return
    literal, value = code.parents[node], node.value
    if (
        isinstance(value, int | float)
        and isinstance(literal, ast.UnaryOp)
        and isinstance(literal.op, ast.USub)
    ):
        value = -value
    else:
        literal = node
    match value:
        case bool():
            yield "truth", 1, {literal: str(not value)}
        case int() if abs(value) < LARGEST:
            yield from _integers(code, literal, value)
        case float():
            replacements = (-value, 1 - value, 0.5, -0.5, 1.0, 0.0)
            yield from (
                ("number", 3, {literal: repr(replacement)})
                for replacement in replacements
                if replacement != value
            )
        case str() if value.strip("+-") in ("inf", "Inf", "infinity"):
            yield "sign", 1, {node: '"inf"' if value.startswith("-") else '"-inf"'}
        case str() if "->" in value and len(value) <= LONGEST and "\\" not in code.text(node):
            yield from _equations(node, code.text(node))


def _integers(code: Part, node: ast.AST, value: int) -> Changes:
    """Yield other axes where it may be one, and numbers near it."""
    outer = code.parents[node]
    is_axis = isinstance(outer, ast.Subscript | ast.Call) or (
        isinstance(outer, ast.keyword) and outer.arg in _BY_WORD
    )
    axes = _AXES if is_axis or isinstance(outer, ast.Tuple) else ()
    for replacement in dict.fromkeys((*axes, value - 1, value + 1, 0, 1, 2, 3)):
        if replacement != value:
            yield (
                "number",
                3 if replacement not in axes else 1 if is_axis else 2,
                {node: str(replacement)},
            )


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
        for letter in dict.fromkeys(m[0] for m in letters):
            if letter != a[0]:
                yield "equation", 4, {node: f"{quoted[: a.start()]}{letter}{quoted[a.end() :]}"}


def names(code: Part, node: ast.AST) -> Changes:
    """Yield each name with others in its place, and each attribute of self with others that were
    made alike.
    """
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in code.names:
            for replacement in (candidate for candidate in code.names if candidate != name):
                near = (name, replacement) in code.pairs or _look_alike(name, replacement)
                yield "name", 2 if near else 4, {node: replacement}
            yield from _sizes_of_self(code, node)
        case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if (
            attr in code.attributes
        ):
            maker = code.attributes[attr]
            alike = [
                attribute
                for attribute, by in code.attributes.items()
                if attribute != attr and by == maker
            ]
            yield from (("attribute", 2, {node: f"self.{attribute}"}) for attribute in alike)
            if not maker:
                yield from (("attribute", 4, {node: name}) for name in code.names)


def _sizes_of_self(code: Part, node: ast.Name) -> Changes:
    """Yield attributes of self for a name that may be a size: first where a root is taken of it."""
    outer = code.parents[node]
    if not isinstance(outer, ast.Attribute | ast.Subscript):
        is_root = isinstance(outer, ast.Call) and code.text(outer.func).endswith("sqrt")
        is_root = is_root or (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow))
        sizes = [name for name, maker in code.attributes.items() if not maker]
        yield from (("attribute", 2 if is_root else 4, {node: f"self.{name}"}) for name in sizes)


def _look_alike(a: str, b: str) -> bool:
    """Return whether they have one length and differ in one letter, or are letters of one case."""
    return (
        len(a) == len(b)
        and a.isupper() == b.isupper()
        and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
