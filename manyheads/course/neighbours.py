"""Which files a file of a course is made from: itself, and the neighbours that it imports."""

from __future__ import annotations

import ast
from pathlib import Path


def with_neighbours(path: Path) -> list[Path]:
    """The file, and in the order of their names the files beside it that it imports (`from ._name import …`), directly or
    through another one. A file that cannot be parsed imports nothing: whoever runs it says why."""
    found: set[Path] = set()
    todo = [path]
    while todo:
        new = _neighbours(todo.pop()) - found - {path}
        found |= new
        todo += new
    return [path, *sorted(found)]


def _neighbours(path: Path) -> set[Path]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return set()
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
    names = {node.module or alias.name for node in imports for alias in node.names}
    beside = {path.with_name(f"{name.split('.')[0]}.py") for name in names}
    return {neighbour for neighbour in beside if neighbour.exists()}
