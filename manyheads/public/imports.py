"""Find imports that work on a student's machine but not in the box, which holds torch and little else."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from ..box.contents import PACKAGES, box_modules

ALWAYS = {*sys.stdlib_module_names, *PACKAGES}


def unavailable_import(source: str) -> str:
    """One sentence about the first import that would fail when the file is imported in the box; "" if there is none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # importing the file reports the error
    for line, name in _imports(tree.body):
        if name not in ALWAYS and name not in box_modules():
            return (
                f"{name} is imported on line {line}, and is not there where attempts are graded: the whole file would count "
                'for nothing. Take that line out, or put it below `if __name__ == "__main__":`'
            )
    return ""


def _imports(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Line and top-level module of each import outside `try`, `if` and functions."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((statement.lineno, alias.name.split(".")[0]) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.lineno, statement.module.split(".")[0]
        elif isinstance(statement, ast.ClassDef | ast.With | ast.For):
            yield from _imports(statement.body)
