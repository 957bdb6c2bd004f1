"""The statements of an attempt's text, for whoever looks at it without running it."""

from __future__ import annotations

import ast

from .notebook import CODE_LIMIT


def statements_of(source: str) -> list[ast.stmt]:
    """The statements of the module, but for those below `if __name__ == "__main__"`.

    Empty if the text is longer than CODE_LIMIT characters, or Python cannot parse it.
    """
    if len(source) > CODE_LIMIT:
        return []
    try:
        return [part for part in ast.parse(source).body if not (isinstance(part, ast.If) and _names_main(part.test))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
