"""What a name stands for, as far as its text shows it: a size, or a tensor. One is not tried in place of the other."""

from __future__ import annotations

import ast
from typing import Literal

from .part import Part, name_of

Kind = Literal["size", "tensor"]
_COUNTING = ("len", "int", "size", "range", "item", "dim", "numel")


def kinds_of(part: Part) -> dict[str, Kind]:
    """The kinds of names that are known; the first place at which a name gets a value decides."""
    found: dict[str, Kind] = {}
    for node in part.nodes:
        if isinstance(node, ast.FunctionDef):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                if argument.annotation is not None and (kind := _annotated(part.text.of(argument.annotation))):
                    found.setdefault(argument.arg, kind)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _note(found, target, _value(node.value, found))
        elif isinstance(node, ast.For | ast.comprehension):
            _note(found, node.target, _value(node.iter, found))
    return found


def _note(found: dict[str, Kind], target: ast.expr, kind: Kind | None) -> None:
    for each in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(each, ast.Name) and kind is not None:
            found.setdefault(each.id, kind)


def _annotated(text: str) -> Kind | None:
    return "size" if text == "int" else "tensor" if text.endswith("Tensor") else None


def _value(node: ast.expr, found: dict[str, Kind]) -> Kind | None:
    """The kind of a value; of several, of each."""
    if isinstance(node, ast.Attribute):
        return "size" if node.attr == "shape" else "tensor" if node.attr in ("T", "mT") else None
    if isinstance(node, ast.Subscript):
        return _value(node.value, found)
    if isinstance(node, ast.Name):
        return found.get(node.id)
    if isinstance(node, ast.Tuple):
        kinds = {_value(each, found) for each in node.elts}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return "tensor"
        sides = {_value(node.left, found), _value(node.right, found)}
        return "tensor" if "tensor" in sides else "size" if "size" in sides else None
    if isinstance(node, ast.Call):
        name = name_of(node)
        return "size" if name in _COUNTING else "tensor" if isinstance(node.func, ast.Attribute) else None
    return None
