"""Edit names: another value in scope, another attribute of self, of the same kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations
from typing import Literal

from .edit_text import Edit
from .reached_parts import Part, is_of_self, name_of

# What a name stands for, as far as its text shows it: a size, or a tensor. One is not tried in place of the other.

Kind = Literal["size", "tensor"]
_COUNTING = ("len", "int", "size", "range", "item", "dim", "numel")


def kinds_of(part: Part) -> dict[str, Kind]:
    """Return the kinds of names that are known; the first place at which a name gets a value decides."""
    kinds: dict[str, Kind] = {}
    for node in part.nodes:
        if isinstance(node, ast.FunctionDef):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                if argument.annotation is not None and (kind := _annotated(part.text.of(argument.annotation))):
                    kinds.setdefault(argument.arg, kind)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _note(kinds, target, _value(node.value, kinds))
        elif isinstance(node, ast.For | ast.comprehension):
            _note(kinds, node.target, _value(node.iter, kinds))
    return kinds


def _note(kinds: dict[str, Kind], target: ast.expr, kind: Kind | None) -> None:
    for elt in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(elt, ast.Name) and kind is not None:
            kinds.setdefault(elt.id, kind)


def _annotated(text: str) -> Kind | None:
    return "size" if text == "int" else "tensor" if text.endswith("Tensor") else None


def _value(node: ast.expr, found: dict[str, Kind]) -> Kind | None:
    """Return the kind of a value; of several, of each."""
    if isinstance(node, ast.Attribute):
        return "size" if node.attr == "shape" else "tensor" if node.attr in ("T", "mT") else None
    if isinstance(node, ast.Subscript):
        return _value(node.value, found)
    if isinstance(node, ast.Name):
        return found.get(node.id)
    if isinstance(node, ast.Tuple):
        kinds = {_value(elt, found) for elt in node.elts}
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


# Edits of names: another value in scope, another attribute of self.


def name_edits(part: Part) -> Iterator[Edit]:
    """Yield each name and each attribute, with others in its place: those of its kind first."""
    pairs, kinds = _bound_together(part), kinds_of(part)
    for node in part.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in part.names:
            for other in part.names:
                if other != node.id and kinds.get(other, kinds.get(node.id)) == kinds.get(node.id, kinds.get(other)):
                    near = (node.id, other) in pairs or _look_alike(node.id, other)
                    yield part.replace("name", 2 if near else 4, (node, other))
            if kinds.get(node.id) != "tensor":
                yield from _attributes_for(part, node)
        elif isinstance(node, ast.Attribute) and is_of_self(node) and node.attr in part.attributes:
            yield from _other_attributes(part, node)


def _other_attributes(part: Part, node: ast.Attribute) -> Iterator[Edit]:
    made = part.attributes[node.attr]
    stored = isinstance(node.ctx, ast.Store)
    for other, by in part.attributes.items():
        if other != node.attr and by == made and not stored:
            yield part.replace("attribute", 2, (node, f"self.{other}"))
    if not stored and not made:
        yield from (part.replace("attribute", 4, (node, name)) for name in part.names)


def _attributes_for(part: Part, node: ast.Name) -> Iterator[Edit]:
    """Sizes of self for a name that may be one: first where a root is taken of it."""
    outer = part.parent(node)
    if not isinstance(outer, ast.Attribute | ast.Subscript):
        is_root = isinstance(outer, ast.Call) and part.text.of(outer.func).endswith("sqrt")
        is_root = is_root or (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow))
        for name, made in part.attributes.items():
            if not made:
                yield part.replace("attribute", 2 if is_root else 4, (node, f"self.{name}"))


def _bound_together(part: Part) -> set[tuple[str, str]]:
    """Return the pairs of names that get their values in one statement, or are parameters of one function."""
    names = frozenset(part.names)  # few, while a text may have thousands of such statements
    found: set[tuple[str, str]] = set()
    for node in part.nodes:
        if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
            found.update(permutations(names & {e.id for e in node.elts if isinstance(e, ast.Name)}, 2))
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            found.update(permutations(names & {a.arg for a in node.args.args}, 2))
    return found


def _look_alike(a: str, b: str) -> bool:
    """Return whether they have one length and differ in one letter, or are letters of one case."""
    return len(a) == len(b) and a.isupper() == b.isupper() and sum(x != y for x, y in zip(a, b, strict=True)) == 1
