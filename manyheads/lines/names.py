"""Edits of names: another value in scope, another attribute of self."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations

from .kinds import kinds_of
from .part import Part, is_of_self
from .text import Edit


def edits(part: Part) -> Iterator[Edit]:
    """Each name and each attribute, with others in its place: those of its kind first."""
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
    """Whether they have one length and differ in one letter, or are letters of one case."""
    return len(a) == len(b) and a.isupper() == b.isupper() and sum(x != y for x, y in zip(a, b, strict=True)) == 1
