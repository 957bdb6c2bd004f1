"""The parts of an attempt that its failed calls reach (functions, methods, statements beside them),
and edits of them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, permutations
from operator import ne
from typing import Any

from ..submission.source_text import printable, statements_of

NAMES = 40  # of a part, and attributes of a class, that are put in place of others
SHOWN = 160  # characters of a line in an edit's description
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict)
_LEFT_OUT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
_NO_CODE = ("annotation", "returns", "decorator_list", "type_params", "msg")

# An edit's kind and tier, and what stands in place of which nodes (a mapping is invariant in its
# keys).
Change = tuple[str, int, Mapping[Any, str]]
Changes = Iterator[Change]


@dataclass(frozen=True)
class Edit:
    """A small change of a text.

    kind: the family that it belongs to. tier: how late it is tried. line: the first line of the
    text that it changes, 0 where it changes nothing.
    """

    category: str
    tier: int
    line: int
    before: str
    after: str

    @property
    def described(self) -> str:
        """The changed lines before and after, for the instructor."""
        return f"{_changed(self.before, self.after)} → {_changed(self.after, self.before)}"


def _changed(text: str, other_text: str) -> str:
    """Return the lines of the text that the other does not have at the same end or beginning, as
    one.
    """
    lines, theirs = text.split("\n"), other_text.split("\n")
    start = [*map(ne, lines, theirs), True].index(True)
    last = [*map(ne, lines[:start:-1], theirs[:start:-1]), True].index(True)
    summary = printable(" ".join(line.strip() for line in lines[start : len(lines) - last]))
    return summary if len(summary) <= SHOWN else f"{summary[: SHOWN - 1]}…"


@dataclass(frozen=True, eq=False)
class Part:
    """A function, or a statement outside of any.

    source: the whole text; data: the same in UTF-8, and starts: where its lines begin, as the
        syntax tree counts.
    attributes: those of self, with the name of what was called to make each, "" where nothing was.
    """

    source: str
    data: bytes
    starts: Sequence[int]
    root: ast.stmt
    attributes: Mapping[str, str]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        return _span(node, self.starts)

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.data[slice(*self.span(node))].decode()

    def atom(self, node: ast.AST) -> str:
        """Return the text of a node, in parentheses where something that is put beside it could
        take it apart.
        """
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def edit(self, category: str, tier: int, new: Mapping[ast.AST, str]) -> Edit:
        """Return the edit of the whole text that puts each new text in place of a node."""
        data, line = self.data, 0
        for node in sorted(new, key=self.span, reverse=True):
            start, end = self.span(node)
            old, written = self.data[start:end], new[node].encode()
            if written != old:
                data = data[:start] + written + data[end:]
                lines = (text.splitlines(keepends=True) for text in (old, written))
                line = node.lineno + [*map(ne, *lines), True].index(True)  # type: ignore[attr-defined]
        return Edit(category, tier, line, self.source, data.decode())

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The nodes that may be edited, each with the node that it stands in."""
        return dict(_inner(self.root, self.root))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes that may be edited and have a place, in the order of the text, outer ones
        first.
        """
        spans = {node: self.span(node) for node in self.parents if hasattr(node, "lineno")}
        return sorted(spans, key=lambda node: (spans[node][0], -spans[node][1]))

    @cached_property
    def names(self) -> list[str]:
        """The names of values: arguments first, and no self."""
        nodes = list(ast.walk(self.root))
        names = [n.arg for n in nodes if isinstance(n, ast.arg)]
        names += [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return [n for n in dict.fromkeys(names) if n not in ("self", "_")][:NAMES]

    @cached_property
    def pairs(self) -> set[tuple[str, str]]:
        """The pairs of names that get their values in one statement, or are parameters of one
        function.
        """
        names = frozenset(self.names)  # few, while a text may have thousands of such statements
        pairs: set[tuple[str, str]] = set()
        for node in self.nodes:
            if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
                pairs.update(
                    permutations(names & {e.id for e in node.elts if isinstance(e, ast.Name)}, 2)
                )
            elif isinstance(node, ast.FunctionDef | ast.Lambda):
                pairs.update(permutations(names & {a.arg for a in node.args.args}, 2))
        return pairs


def _inner(node: ast.AST, outer: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the nodes whose text may be edited, each with the node that it stands in: no
    annotations, messages, docstrings.
    """
    yield node, outer
    for value in (value for name, value in ast.iter_fields(node) if name not in _NO_CODE):
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and not isinstance(child, _LEFT_OUT)
                and not is_docstring(child)
            ):
                yield from _inner(child, node)


def _span(node: Any, starts: Sequence[int]) -> tuple[int, int]:
    """Return where a node that has a place begins and ends, in bytes. starts: where lines begin."""
    return starts[node.lineno - 1] + node.col_offset, starts[
        node.end_lineno - 1
    ] + node.end_col_offset


def name_of(node: ast.Call) -> str:
    """Return the last part of the name of what is called, "" where it has none."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_docstring(node: ast.AST) -> bool:
    """Return whether this is a statement that is a constant alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def parts_of(source: str, targets: Collection[str]) -> Iterator[Part]:
    """Yield the parts that calls of these functions and classes reach; all where no target is there
    to be seen.
    """
    data, statements = source.encode(), statements_of(source)
    starts = list(accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0))
    reached = _reached(statements, targets)
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            if statement.name in reached:
                attributes = _attributes(statement, data, starts)
                for member in statement.body:
                    name = member.name if isinstance(member, ast.FunctionDef) else "__"
                    if name in reached or name == "forward" or name.startswith("__"):
                        yield Part(source, data, starts, member, attributes)
        elif not isinstance(statement, ast.FunctionDef) or statement.name in reached:
            yield Part(source, data, starts, statement, {})


def _attributes(statement: ast.ClassDef, data: bytes, starts: Sequence[int]) -> dict[str, str]:
    """Return the attributes of self, with the text of what was called to make each, "" if nothing
    was.
    """
    makers: dict[str, str] = {}
    for node in ast.walk(statement):
        match node:
            case ast.Assign(targets=targets, value=value):
                maker = (
                    data[slice(*_span(value.func, starts))].decode()
                    if isinstance(value, ast.Call)
                    else ""
                )
                for target in targets:
                    match target:
                        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                            makers.setdefault(attr, maker)
            case ast.Call(
                func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=name), *_]
            ):
                makers[str(name)] = "register_buffer"
    return dict(list(makers.items())[:NAMES])


def _reached(statements: Sequence[ast.stmt], targets: Collection[str]) -> set[str]:
    """Return the names of all functions, methods and classes that the targets use, directly or
    not.
    """
    bodies: dict[str, list[ast.stmt]] = defaultdict(list)
    for statement in statements:
        for member in (statement, *(statement.body if isinstance(statement, ast.ClassDef) else ())):
            # an assignment may name a function
            for node in member.targets if isinstance(member, ast.Assign) else [member]:
                if name := getattr(node, "id", getattr(node, "name", "")):
                    bodies[name].append(member)
    waiting = [t for t in targets if t in bodies] or list(bodies)
    reached: set[str] = set()
    looked_at: set[ast.stmt] = set()  # a statement may have thousands of names: a = b = c = …
    while waiting:
        name = waiting.pop()
        new = set() if name in reached else {*bodies[name]} - looked_at
        reached.add(name)
        looked_at |= new
        used = (
            getattr(node, "id", getattr(node, "attr", ""))
            for body in new
            for node in ast.walk(body)
        )
        waiting += [used_name for used_name in used if used_name in bodies]
    return reached
