"""Mutants handed in as attempts: of a bank, with what it imports from its neighbours, what one call needs, as one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def one_file(path: Path, call: str) -> str:
    """Return the statements of the file and of its neighbours that the call uses, and after them the call itself."""
    statements = [*_statements(path, {path}), (call, ast.parse(call))]
    names = [{node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} for _, tree in statements]
    wanted, count = {*names[-1]}, 0
    while count < len(wanted):
        count = len(wanted)
        for (_, tree), used in zip(statements, names, strict=True):
            if not wanted.isdisjoint(_bound(tree)):
                wanted |= used
    return "\n".join(text for text, tree in statements if text is call or not wanted.isdisjoint(_bound(tree))) + "\n"


def _statements(path: Path, seen: set[Path]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the file's statements, with a neighbour's in place of the first `from ._neighbour import …` that names it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            neighbour = path.with_name(f"{node.module}.py")
            if neighbour not in seen:
                seen.add(neighbour)
                yield from _statements(neighbour, seen)
        else:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            yield "\n".join(lines[first - 1 : node.end_lineno]), node


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(tree, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in tree.names}
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):
        return {tree.name}
    targets = tree.targets if isinstance(tree, ast.Assign) else [tree]
    every = (node for target in targets for node in ast.walk(target))
    return {node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
