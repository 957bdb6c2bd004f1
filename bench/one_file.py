"""Mutants handed in as attempts: of a bank, with what it imports from its neighbours, what one call
needs, as one file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

Module = tuple[list[str], list[ast.stmt]]  # the lines of a file, and its statements


def one_file(path: Path, call: str) -> str:
    """Return what the call needs of the file, and after it the call itself. A neighbour becomes an
    object with its names.
    """
    modules = dict(_loaded(path, set()))
    wanted = {name: set[str]() for name in modules} | {path.stem: _names([ast.parse(call)])}
    size = -1
    while size != (size := sum(map(len, wanted.values()))):
        for name, (_, statements) in modules.items():
            needed = _needed(statements, wanted[name])
            wanted[name] |= _names(needed)
            for own, neighbour, of in _imported(needed):
                wanted[neighbour] |= (
                    ({of} if of else _names(needed, ast.Attribute))
                    if own in wanted[name]
                    else set()
                )
    texts = {name: _text(module, wanted[name]) for name, module in modules.items() if wanted[name]}
    bank, kept = texts.pop(path.stem), "    return SimpleNamespace(**locals())"
    parts = [
        f"def {name}():\n{indent(text, '    ')}\n{kept}\n{name} = {name}()"
        for name, text in texts.items()
    ]
    return "\n".join(["from types import SimpleNamespace", *parts, bank, call]) + "\n"


def _loaded(path: Path, seen: set[str]) -> Iterator[tuple[str, Module]]:
    """Yield the neighbours that a file imports, each once, and then the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    statements = ast.parse("\n".join(lines)).body
    for _, neighbour, _ in _imported(statements):
        if neighbour not in seen:
            seen.add(neighbour)
            yield from _loaded(path.with_name(f"{neighbour}.py"), seen)
    yield path.stem, (lines, statements)


def _imported(statements: Sequence[ast.AST]) -> Iterator[tuple[str, str, str]]:
    """Yield the own name of each import, the neighbour's, and what is imported of it; "" where it
    is the neighbour itself.
    """
    for node in statements:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                yield (
                    alias.asname or alias.name,
                    node.module or alias.name,
                    alias.name if node.module else "",
                )


def _needed(statements: Sequence[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    return [each for each in statements if not wanted.isdisjoint(_bound(each))]


def _names(trees: Sequence[ast.AST], kind: type[ast.expr] = ast.Name) -> set[str]:
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, kind))
    return {getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes}


def _text(module: Module, wanted: set[str]) -> str:
    lines, statements = module
    parts = list[str]()
    for node in _needed(statements, wanted):
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        given = [
            f"{own} = {'.'.join(filter(None, name))}"
            for own, *name in _imported([node])
            if own in wanted
        ]
        parts += given or lines[first - 1 : node.end_lineno]
    return "\n".join(parts)


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(tree, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in tree.names}
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):
        return {tree.name}
    targets = tree.targets if isinstance(tree, ast.Assign) else [tree]
    every = (node for target in targets for node in ast.walk(target))
    return {
        node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
