"""Edits of what stands as a constant: axes, offsets, truth values, infinities, and the letters of an einsum."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .part import Part
from .text import Edit

LONGEST = 80  # characters of an equation
LARGEST = 2**63  # of an integer: no tensor holds a larger one, and one of 4,301 digits cannot be written down again
_AXES = (-1, -2, 1, 2, 0, 3, -3)
_BY_WORD = ("dim", "dims", "axis", "diagonal", "dim0", "dim1")
_WORD = re.compile(r"[A-Za-z]\w*")
_LETTER = re.compile(r"[A-Za-z]")


def edits(part: Part) -> Iterator[Edit]:
    """Every constant, with other values."""
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
    """Two letters of one operand swapped, or a letter in place of another; words where letters stand apart."""
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
