"""Mutants handed in as attempts: a bank as one file, with all that it imports from its neighbours."""

from __future__ import annotations

import ast
from pathlib import Path


def one_file(path: Path, seen: set[Path] | None = None) -> str:
    """The text of this file, with a neighbour's text in place of the first `from ._neighbour import …` that names it."""
    seen = set() if seen is None else seen
    text = path.read_text(encoding="utf-8")
    lines, parts, end = text.splitlines(), [], 0
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ImportFrom) or node.level != 1:
            continue
        parts += lines[end : node.lineno - 1]
        end = node.end_lineno or node.lineno
        neighbour = path.with_name(f"{node.module}.py")
        if neighbour not in seen:
            seen.add(neighbour)
            parts.append(one_file(neighbour, seen))
    return "\n".join([*parts, *lines[end:]]) + "\n"
