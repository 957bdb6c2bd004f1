"""Mutants handed in as attempts: of a bank, with what it imports from its neighbours, what one call
needs, as one file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

ParsedModule = tuple[list[str], list[ast.stmt]]  # the lines of a file, and its statements


def one_file(path: Path, call: str) -> str:
    """Return the parts of the file that the call needs, followed by the call.

    A neighbour becomes an object with its names as attributes.
    """
    modules = dict(_load_modules(path, set()))
    needed_names = {name: set[str]() for name in modules} | {path.stem: _names([ast.parse(call)])}
    size = -1
    while size != (size := sum(map(len, needed_names.values()))):
        for name, (_, statements) in modules.items():
            needed = _needed_statements(statements, needed_names[name])
            needed_names[name] |= _names(needed)
            for local_name, neighbour, imported in _imported_names(needed):
                if local_name in needed_names[name]:
                    names = {imported} if imported else _names(needed, ast.Attribute)
                    needed_names[neighbour] |= names
    texts = {
        name: _text(module, needed_names[name])
        for name, module in modules.items()
        if needed_names[name]
    }
    bank, ending = texts.pop(path.stem), "    return SimpleNamespace(**locals())"
    wrappers = [
        f"def {name}():\n{indent(text, '    ')}\n{ending}\n{name} = {name}()"
        for name, text in texts.items()
    ]
    return "\n".join(["from types import SimpleNamespace", *wrappers, bank, call]) + "\n"


def _load_modules(path: Path, visited: set[str]) -> Iterator[tuple[str, ParsedModule]]:
    """Yield the neighbours that a file imports, each once, and then the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    statements = ast.parse("\n".join(lines)).body
    for _, neighbour, _ in _imported_names(statements):
        if neighbour not in visited:
            visited.add(neighbour)
            yield from _load_modules(path.with_name(f"{neighbour}.py"), visited)
    yield path.stem, (lines, statements)


def _imported_names(statements: Sequence[ast.AST]) -> Iterator[tuple[str, str, str]]:
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


def _needed_statements(statements: Sequence[ast.stmt], names: set[str]) -> list[ast.stmt]:
    return [statement for statement in statements if not names.isdisjoint(_bound_names(statement))]


def _names(trees: Sequence[ast.AST], node_type: type[ast.expr] = ast.Name) -> set[str]:
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, node_type))
    return {getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes}


def _text(module: ParsedModule, names: set[str]) -> str:
    lines, statements = module
    blocks = list[str]()
    for node in _needed_statements(statements, names):
        start = min(
            [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
        )
        assignments = [
            f"{local_name} = {'.'.join(filter(None, name))}"
            for local_name, *name in _imported_names([node])
            if local_name in names
        ]
        blocks += assignments or lines[start - 1 : node.end_lineno]
    return "\n".join(blocks)


def _bound_names(tree: ast.AST) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(tree, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in tree.names}
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):
        return {tree.name}
    targets = tree.targets if isinstance(tree, ast.Assign) else [tree]
    nodes = (node for target in targets for node in ast.walk(target))
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
