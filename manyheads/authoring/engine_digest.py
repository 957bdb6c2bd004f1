"""Make a digest of the engine's own code that some of its modules run: theirs, and that of every module that they import.

It tells whether what they made may be out of date. It is the same on every machine. Comments, docstrings, imports and the
files in which code stands do not change it.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from ..submission.source_text import code_digest

ENGINE = Path(__file__).parents[1]
DATA = ("*.yaml", "*.txt")  # read by the modules beside them


@cache  # the code that runs is what was imported, and reading it takes an eighth of a second
def engine_digest(*modules: str) -> str:
    """Return the digest of these modules, named as in `authoring.release_exercises`."""
    found: set[Path] = set()
    todo = [_path(f"{ENGINE.name}.{name}") for name in modules]
    while todo:
        path = todo.pop()
        if path is None or path in found:
            continue
        found.add(path)
        todo += [_path(name) for name in imports_of(path)]
    data = {file for folder in {path.parent for path in found} for kind in DATA for file in folder.glob(kind)}
    parts = [code_digest(path.read_text(encoding="utf-8")) for path in data]
    parts += [part for path in found for part in statements_of(path)]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def statements_of(path: Path) -> Iterator[str]:
    """Yield a digest of each statement of a module's top level that is no import, without its docstrings."""
    source = path.read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            first, last = node.body[0].lineno, node.body[0].end_lineno or 0
            lines[first - 1 : last] = [""] * (last - first + 1)
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            yield code_digest("\n".join(lines[first - 1 : node.end_lineno]))


def imports_of(path: Path) -> set[str]:
    """Return the names of what a module imports, also within a function: modules, and what may be modules."""
    parts = path.relative_to(ENGINE.parent).with_suffix("").parts
    package = ".".join(parts[:-1])
    imports = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package if node.level else None)
            imports |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return imports


def _path(name: str) -> Path | None:
    """Return the file of a module of the engine; None for anything else."""
    parts = name.split(".")
    if parts[0] != ENGINE.name:
        return None
    place = ENGINE.joinpath(*parts[1:])
    package = place / "__init__.py"
    file = place.with_suffix(".py") if len(parts) > 1 else package
    return file if file.exists() else package if package.exists() else None
