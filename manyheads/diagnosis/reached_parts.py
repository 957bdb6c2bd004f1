"""The parts of an attempt that its failed calls reach: functions, methods, and statements beside them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ..submission.unwritten import statements_of
from .edit_text import Edit, Text

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMES = 40  # of a part, and attributes of a class, that are put in place of others
_LEFT_OUT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
_NO_CODE = ("annotation", "returns", "decorator_list", "type_comment", "type_params", "msg")


@dataclass(frozen=True)
class Part:
    """A function, or a statement outside of any.

    nodes: what may be edited, in the order of the text. names: the values that have a name there, without self.
    attributes: those of self, with the text of the call that made each, "" where none did.
    """

    text: Text
    root: ast.stmt
    nodes: tuple[ast.AST, ...]
    names: tuple[str, ...]
    attributes: dict[str, str]
    parents: dict[int, ast.AST] = field(repr=False)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that this one stands in."""
        return self.parents.get(id(node))

    def replace(self, kind: str, tier: int, *changes: tuple[ast.AST, str]) -> Edit:
        """Return the edit that puts each text in place of a node."""
        return self.text.edit(kind, tier, *((self.text.start(n), self.text.end(n), new) for n, new in changes))

    def after(self, kind: str, tier: int, node: ast.AST, new: str) -> Edit:
        """Return the edit that puts a text behind a node, which is held together."""
        return self.replace(kind, tier, (node, f"{self.text.held(node)}{new}"))


def parts_of(source: str, targets: Collection[str]) -> list[Part]:
    """Return the parts that calls of these functions and classes reach; all where no target is there to be seen."""
    text, statements = Text(source), statements_of(source)
    reached = _reached(statements, targets)
    parts: list[Part] = []
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            if statement.name in reached:
                parts += _parts_of_class(text, statement, reached)
        elif not isinstance(statement, FUNCTIONS) or statement.name in reached:
            parts.append(_part(text, statement, {}))
    return parts


def _parts_of_class(text: Text, statement: ast.ClassDef, reached: Collection[str]) -> Iterator[Part]:
    attributes = _attributes(text, statement)
    for each in statement.body:
        if not isinstance(each, FUNCTIONS) or each.name in reached or each.name == "forward" or each.name[:2] == "__":
            yield _part(text, each, attributes)


def _part(text: Text, root: ast.stmt, attributes: dict[str, str]) -> Part:
    parents: dict[int, ast.AST] = {}
    nodes = tuple(_nodes(root, parents))
    placed = sorted((n for n in nodes if hasattr(n, "lineno")), key=lambda n: (text.start(n), -text.end(n)))
    return Part(text, root, tuple(placed), _names(root), attributes, parents)


def _nodes(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes whose text may be edited: no annotations, messages and docstrings."""
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if (
                name in _NO_CODE
                or not isinstance(child, ast.AST)
                or isinstance(child, _LEFT_OUT)
                or is_docstring(child)
            ):
                continue
            parents[id(child)] = node
            yield from _nodes(child, parents)


def _names(root: ast.stmt) -> tuple[str, ...]:
    found = [n.arg for n in ast.walk(root) if isinstance(n, ast.arg)]
    found += [n.id for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return tuple(n for n in dict.fromkeys(found) if n not in ("self", "_"))[:NAMES]


def _attributes(text: Text, statement: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if is_of_self(target):
                    made = node.value.func if isinstance(node.value, ast.Call) else None
                    found.setdefault(target.attr, text.of(made) if made else "")  # type: ignore[attr-defined]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_buffer"
        ):
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            found.update({str(name): "register_buffer" for name in names})
    return dict(list(found.items())[:NAMES])


def name_of(node: ast.Call) -> str:
    """Return the last part of the name of what is called, "" where it has none."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_docstring(node: ast.AST) -> bool:
    """Return whether this is a statement that is a constant alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_of_self(node: ast.AST) -> bool:
    """Return whether this is self.NAME."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _reached(statements: Sequence[ast.stmt], targets: Collection[str]) -> set[str]:
    """Return the names of all functions, methods and classes that the targets use, directly or not."""
    bodies: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        inner = statement.body if isinstance(statement, ast.ClassDef) else []
        for each in (statement, *inner):
            if isinstance(each, (*FUNCTIONS, ast.ClassDef)):
                bodies.setdefault(each.name, []).append(each)
            elif isinstance(each, ast.Assign):  # a name for a function
                for target in each.targets:
                    if isinstance(target, ast.Name):
                        bodies.setdefault(target.id, []).append(each)
    waiting = [t for t in targets if t in bodies] or list(bodies)
    reached: set[str] = set()
    looked_at: set[int] = set()  # a statement may have thousands of names: a = b = c = …
    while waiting:
        name = waiting.pop()
        bodies_of_it = [] if name in reached else [body for body in bodies[name] if id(body) not in looked_at]
        reached.add(name)
        looked_at.update(map(id, bodies_of_it))
        waiting += [used for body in bodies_of_it for used in _used(body) if used in bodies]
    return reached


def _used(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
